"""Every table and figure of the paper beside ours: run, or taken from the cache, then written as a page."""

from primaldepth.report.build import EvaluationReport, Studies
from primaldepth.report.figures import require_matplotlib
from primaldepth.report.plan import ReportSettings, lines
from primaldepth.report.results import Bench, Watch
from primaldepth.report.write import write_report

__all__ = [
    "Bench",
    "EvaluationReport",
    "ReportSettings",
    "Studies",
    "Watch",
    "lines",
    "require_matplotlib",
    "write_report",
]
