"""Congestion-control conformance: which algorithm does a TCP or QUIC stack really run?

This file is imported inside guests by the system's own Python, so it imports nothing.
"""

__version__ = "0.1.0"
