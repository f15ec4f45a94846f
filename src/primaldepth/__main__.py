"""`python -m primaldepth`."""

from primaldepth.cli.main import run

run()
