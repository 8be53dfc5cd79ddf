"""The pure core: no subprocess, socket, clock, global random numbers or Mininet (tests/test_layers.py)."""
