"""Every table and figure of the paper beside ours: run, or taken from the cache, then written as a page."""

from primaldepth.evaluation.report.build import Report, Studies
from primaldepth.evaluation.report.figures import require_matplotlib
from primaldepth.evaluation.report.gather import Bench, Watch
from primaldepth.evaluation.report.plan import ReportSettings, lines
from primaldepth.evaluation.report.write import write_report

__all__ = [
    "Bench",
    "Report",
    "ReportSettings",
    "Studies",
    "Watch",
    "lines",
    "require_matplotlib",
    "write_report",
]
