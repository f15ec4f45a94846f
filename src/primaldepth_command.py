"""The command `primaldepth`: outside of the package, whose import takes a second in which Ctrl-C may come."""

import sys


def run() -> None:
    """Entry point: Ctrl-C while torch is being imported is one line and exit code 130, as it is later."""
    try:
        from primaldepth.cli.main import run as run_command
    except KeyboardInterrupt:
        sys.stderr.write("primaldepth: interrupted\n")
        sys.exit(130)
    run_command()
