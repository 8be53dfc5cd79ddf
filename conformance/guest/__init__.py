"""Code that runs next to the stack under test: inside a guest, or as root on a host.

It uses the standard library and Mininet only, on the system's own Python (3.11 or later): it cannot rely on any of the
engine's dependencies.
"""
