"""Options that several of these programs take."""

import argparse
from pathlib import Path


def data_and_method(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with --data, the folder of the benchmarks, and --method."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--method", default="pdn-any")
    return parser
