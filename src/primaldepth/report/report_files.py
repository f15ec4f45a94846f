"""The report's files: a page that needs nothing else, the same in Markdown with pictures, and the numbers."""

import json
import re
from importlib import resources
from pathlib import Path

from primaldepth.io import write_bytes
from primaldepth.report.blocks import Document, Paragraph, SideBySide, Table
from primaldepth.report.markdown import FIGURES, to_markdown
from primaldepth.report.studies import EvaluationReport

PAGE, TWIN, NUMBERS = "report.html", "report.md", "report.json"


def write_report(report: EvaluationReport, folder: Path) -> list[Path]:
    """Write every file, each atomically; the page comes last, so where it exists all is there.

    Args:
        report: with everything in it.
        folder: for the files; made if it is missing.

    Returns:
        Paths of the page, its twin and the numbers.
    """
    for picture in report.document.pictures():
        write_bytes(folder / FIGURES / f"{picture.name}.{picture.suffix}", picture.data)
    write_bytes(folder / NUMBERS, json.dumps(report.as_json(), indent=1, allow_nan=False).encode())
    write_bytes(folder / TWIN, to_markdown(report.document).encode())
    write_bytes(folder / PAGE, to_html(report.document).encode())
    return [folder / name for name in (PAGE, TWIN, NUMBERS)]


def to_html(document: Document) -> str:
    """Return the page, made by the template `page.html.j2`."""
    import jinja2
    from markupsafe import Markup, escape

    def marked(text: str) -> Markup:
        return Markup(_marked(str(escape(text))))  # noqa: S704 - escaped before

    files = resources.files(__package__)
    place = jinja2.Environment(
        autoescape=True,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    place.filters["marked"] = marked
    for kind in (Paragraph, SideBySide, Table):
        place.tests[kind.__name__] = lambda block, kind=kind: isinstance(block, kind)
    template = place.from_string(files.joinpath("page.html.j2").read_text(encoding="utf-8"))
    return template.render(document=document, style=files.joinpath("style.css").read_text(encoding="utf-8"))


def _marked(text: str) -> str:
    """Mark up code, the best of a column, and indices, in text that is escaped."""
    for mark, words in (("best", "best"), ("second", "second best")):
        text = text.replace(f"[[{mark}]]", f'<span class="key {mark}">{words}</span>')
    text = re.sub(r"([Δσ])_(\w)", r"\1<sub>\2</sub>", text)
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
