"""Judging: zones, verdicts on measurements, and the statistics that both rest on."""
