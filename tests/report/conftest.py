"""The report is tested on the judge's small benchmarks, with the networks' small nets."""

import sys
from pathlib import Path

for room in ("evaluation", "networks"):
    sys.path.insert(0, str(Path(__file__).parents[1] / room))

from judge_fixtures import own_cache, small  # noqa: E402

__all__ = ["own_cache", "small"]
