"""Predictions and zones for paths of two segments with a connection-splitting proxy. Pure."""
