"""Render results as text for terminals, and as Markdown."""
