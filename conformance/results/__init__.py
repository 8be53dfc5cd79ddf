"""Store, merge and read result lines."""
