"""The computations of the commands, one module for each command."""
