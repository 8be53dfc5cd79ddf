"""Readers of result lines: terminal and HTML. Nothing here measures."""
