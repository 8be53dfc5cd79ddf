"""Questions over many measurements: drift, identification, mutants. Pure."""
