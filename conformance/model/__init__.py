"""The pure core: it uses no subprocess, socket, clock, global random numbers or Mininet (tests/unit/test_layers.py)."""
