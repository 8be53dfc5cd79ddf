"""Pure functions for the emulated network: tc commands, calibration, and checks whether a trial can be believed."""
