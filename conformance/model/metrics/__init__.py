"""Metrics: functions of a measurement and a group of flows, and the table of them all."""
