"""The emulated network: tc commands, calibration, and whether a trial is to be believed. Pure."""
