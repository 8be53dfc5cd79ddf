"""The pytest plugin: the tests that `pytest -m ALGORITHM` collects and runs."""
