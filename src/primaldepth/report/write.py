"""The report's files: a page, its twin, the numbers, and the pictures of the twin."""

import json
from pathlib import Path

from primaldepth.io import write_bytes
from primaldepth.report.build import EvaluationReport
from primaldepth.report.markdown import FIGURES, to_markdown
from primaldepth.report.page import to_html

PAGE, TWIN, NUMBERS = "report.html", "report.md", "report.json"


def write_report(report: EvaluationReport, folder: Path) -> list[Path]:
    """Write every file, each atomically; the page comes last and tells that all is there."""
    for picture in report.document.pictures():
        write_bytes(folder / FIGURES / f"{picture.name}.{picture.suffix}", picture.data)
    write_bytes(folder / NUMBERS, json.dumps(report.as_json(), indent=1, allow_nan=False).encode())
    write_bytes(folder / TWIN, to_markdown(report.document).encode())
    write_bytes(folder / PAGE, to_html(report.document).encode())
    return [folder / name for name in (PAGE, TWIN, NUMBERS)]
