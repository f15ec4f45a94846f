"""The program under test is one of the benchmarks, which lie beside the tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
