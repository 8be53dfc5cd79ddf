"""Run the `conformance` command, as `python -m conformance`."""

from conformance.cli import main

main()
