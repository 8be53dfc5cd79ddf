"""What cc-conformance otherwise compiles, built. It is found by being here: conformance/support/paths.py."""
