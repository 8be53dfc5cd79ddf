"""The pure core: no subprocess, socket, clock, global random numbers or Mininet (tests/unit/test_layers.py)."""
