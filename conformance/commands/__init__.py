"""What each command computes: one module a command."""
