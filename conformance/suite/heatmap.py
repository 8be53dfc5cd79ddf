"""A stand-in for the tests of every zone: plugin.py collects one for each cell when pytest reaches this file.

In a checkout, `pytest -m cubic` reaches it by testpaths; elsewhere, `pytest --pyargs conformance.suite -m cubic` does.
"""
