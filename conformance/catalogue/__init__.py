"""Derive, read and check documents that ship or that a user gives: zones, profiles, expectations and others."""
