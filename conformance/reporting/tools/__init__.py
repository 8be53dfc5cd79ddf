"""Render results for other programs: exports, badges, annotations, JUnit XML."""
