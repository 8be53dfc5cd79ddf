"""Paths of two segments and connection-splitting proxies: predictions, zones, accuracy. Pure."""
