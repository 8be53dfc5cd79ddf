"""Predictions, zones and accuracy for paths of two segments with a connection-splitting proxy. Pure."""
