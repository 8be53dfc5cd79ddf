"""Run the `conformance` command, also as `python -m conformance`."""

import sys


def main() -> None:
    """Run the command. Importing it takes a moment, in which Ctrl-C ends in one line, too."""
    try:
        from conformance import cli
    except KeyboardInterrupt:
        sys.stderr.write("conformance: interrupted\n")
        sys.exit(130)
    cli.main()


if __name__ == "__main__":
    main()
