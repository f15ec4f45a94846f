"""The report as Markdown; its pictures lie in a folder beside it.

Lines of tables are joined here, for a template would be longer than this code.
"""

import re

from primaldepth.report.blocks import Block, Cell, Document, Gallery, Paragraph, SideBySide, Table

FIGURES = "figures"


def to_markdown(document: Document) -> str:
    """Return the report as Markdown: the sections, tables, pictures and words of the page."""
    parts = [f"# {document.title}", _text(document.lead)]
    for section in document.sections:
        parts += [f"## {section.title}", *map(_block, section.blocks)]
    return "\n\n".join([*parts, "---", _text(document.footer)]) + "\n"


def _text(text: str) -> str:
    marked = text.replace("[[best]]", "**best**").replace("[[second]]", "*second best*")
    return re.sub(r"([Δσ])_(\w)", r"\1<sub>\2</sub>", marked)


def _block(block: Block) -> str:
    if isinstance(block, Paragraph):
        return f"> {_text(block.text)}" if block.notice else _text(block.text)
    if isinstance(block, SideBySide):
        return "\n\n".join(map(_table, block.tables))
    return _table(block) if isinstance(block, Table) else _gallery(block)


def _titled(title: str, parts: list[str]) -> str:
    return "\n\n".join([f"### {title}", *parts] if title else parts)


def _gallery(gallery: Gallery) -> str:
    images = [f"![{p.alt}]({FIGURES}/{p.name}.{p.suffix})" for p in gallery.pictures]
    captions = [_text(gallery.caption)] if gallery.caption else []
    if gallery.columns < 4:
        return _titled(gallery.title, [*images, *captions])
    cells = [f"{image}<br>{picture.label}" for image, picture in zip(images, gallery.pictures, strict=True)]
    count = gallery.columns
    lines = [[" "] * count, ["---"] * count]
    lines += [cells[first : first + count] for first in range(0, len(cells), count)]
    return _titled(gallery.title, ["\n".join(map(_line, lines)), *captions])


def _table(table: Table) -> str:
    heads = [f"{column.group} {column.title}".strip() for column in table.columns]
    texts = {i for row in table.rows for i, cell in enumerate(row.cells) if cell.kind in ("text", "name")}
    lines = [_line(heads), _line(["---" if i in texts else "---:" for i in range(len(heads))])]
    lines += [_line([text for cell in row.cells for text in _cells(cell)]) for row in table.rows]
    return _titled(table.title, ["\n".join(lines)])


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(cell: Cell) -> list[str]:
    """Return one text for each column that a cell takes."""
    text = cell.text.replace("|", "\\|")
    if cell.kind == "name":
        text = f"`{text}`"
    marked = {"best": f"**{text}**", "second": f"*{text}*"}.get(cell.mark, text)
    return [marked, *([""] * (cell.span - 1))]
