"""Trials: what is measured, of whom, and what came of it."""
