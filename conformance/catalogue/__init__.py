"""Documents that ship or that a user gives: zones, profiles, expectations; derived, read and checked."""
