"""Questions over many measurements: comparison, identification, mutants. Pure."""
