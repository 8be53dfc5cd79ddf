"""What runs next to the stack under test: inside a guest, or as root on a host.

Standard library and Mininet only, on the system's own Python (3.11 or later): none of the
engine's dependencies can be counted on here.
"""
