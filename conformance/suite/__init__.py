"""What `pytest -m ALGORITHM` collects."""
