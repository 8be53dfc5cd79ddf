"""Questions about many measurements: studies, comparison, identification, mutants. Pure."""
