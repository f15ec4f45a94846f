"""The report as one HTML page that needs nothing else: style and pictures are inside."""

import base64
import html
import re
from importlib import resources
from itertools import groupby

from primaldepth.report.blocks import (
    Block,
    Cell,
    Document,
    Gallery,
    Paragraph,
    Picture,
    Section,
    SideBySide,
    Table,
    TableColumn,
    TableRow,
)

_MEDIA = {"svg": "image/svg+xml", "png": "image/png", "jpg": "image/jpeg"}
_COUNTS = {1: " one", 2: " two", 3: " three"}


def to_html(document: Document) -> str:
    """The page."""
    style = resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    links = "".join(f'<li><a href="#{s.anchor}">{_text(s.title)}</a></li>' for s in document.sections)
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_text(document.title)}</title>",
            '<link rel="icon" href="data:,">',
            f"<style>\n{style}</style>",
            "</head>",
            "<body>",
            f"<header><h1>{_text(document.title)}</h1>",
            f'<p class="lead">{_text(document.lead)}</p></header>',
            f"<nav><ul>{links}</ul></nav>",
            "<main>",
            *map(_section, document.sections),
            "</main>",
            f"<footer><p>{_text(document.footer)}</p></footer>",
            "</body>",
            "</html>\n",
        ]
    )


def _text(text: str) -> str:
    """Escaped and marked up."""
    marked = html.escape(text)
    for mark, words in (("best", "best"), ("second", "second best")):
        marked = marked.replace(f"[[{mark}]]", f'<span class="key {mark}">{words}</span>')
    marked = re.sub(r"([Δσ])_(\w)", r"\1<sub>\2</sub>", marked)
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", marked)


def _section(section: Section) -> str:
    blocks = "\n".join(map(_block, section.blocks))
    return f'<section id="{section.anchor}">\n<h2>{_text(section.title)}</h2>\n{blocks}\n</section>'


def _block(block: Block) -> str:
    if isinstance(block, Paragraph):
        return f"<p{' class=notice' if block.notice else ''}>{_text(block.text)}</p>"
    if isinstance(block, SideBySide):
        tables = "\n".join(f"<div>{_table(table)}</div>" for table in block.tables)
        return f'<div class="side">\n{tables}\n</div>'
    return _table(block) if isinstance(block, Table) else _gallery(block)


def _gallery(gallery: Gallery) -> str:
    figures = "\n".join(map(_figure, gallery.pictures))
    size = _COUNTS.get(gallery.columns, "")
    caption = f'<p class="caption">{_text(gallery.caption)}</p>' if gallery.caption else ""
    style = f'class="gallery{size}" style="--columns: {gallery.columns}"'
    return f"{_title(gallery.title)}<div {style}>\n{figures}\n</div>\n{caption}"


def _title(title: str) -> str:
    return f"<h3>{_text(title)}</h3>\n" if title else ""


def _figure(picture: Picture) -> str:
    data = base64.b64encode(picture.data).decode()
    image = f'<img alt="{html.escape(picture.alt)}" src="data:{_MEDIA[picture.suffix]};base64,{data}">'
    label = f"<figcaption>{_text(picture.label)}</figcaption>" if picture.label else ""
    return f"<figure>{image}{label}</figure>"


def _table(table: Table) -> str:
    starts = _starts(table.columns)
    rows = "\n".join(_row(row, starts) for row in table.rows)
    head = _groups(table.columns) + _titles(table, starts)
    return (
        f'{_title(table.title)}<div class="scroll" tabindex="0">\n<table>\n<thead>{head}</thead>\n'
        f"<tbody>\n{rows}\n</tbody>\n</table>\n</div>"
    )


def _starts(columns: tuple[TableColumn, ...]) -> list[bool]:
    """Whether a column begins a group."""
    groups = [column.group for column in columns]
    return [i > 0 and groups[i] != groups[i - 1] for i in range(len(groups))]


def _groups(columns: tuple[TableColumn, ...]) -> str:
    if not any(column.group for column in columns):
        return ""
    cells = []
    for index, (group, members) in enumerate(groupby(columns, key=lambda column: column.group)):
        kind = "left" if index == 0 else "group start" if group else "start"
        cells.append(f'<th class="{kind}" colspan="{len(list(members))}">{_text(group)}</th>')
    return f'<tr class="groups">{"".join(cells)}</tr>'


def _titles(table: Table, starts: list[bool]) -> str:
    texts = {i for row in table.rows for i, cell in enumerate(row.cells) if cell.kind == "text"}
    cells = []
    for index, column in enumerate(table.columns):
        kind = "left" if index == 0 else "left text" if index in texts else "start" if starts[index] else ""
        cells.append(f'<th scope="col" class="{kind}">{_text(column.title)}</th>')
    return f"<tr>{''.join(cells)}</tr>"


def _row(row: TableRow, starts: list[bool]) -> str:
    cells, column = [], 0
    for cell in row.cells:
        cells.append(_cell(cell, starts[column]))
        column += cell.span
    return f"<tr{' class=rule' if row.rule else ''}>{''.join(cells)}</tr>"


def _cell(cell: Cell, start: bool) -> str:
    if cell.kind == "name":
        return f'<th scope="row" class="left"><code>{_text(cell.text)}</code></th>'
    kinds = " ".join(kind for kind in (cell.kind, cell.mark, "start" if start else "") if kind)
    span = f' colspan="{cell.span}"' if cell.span > 1 else ""
    return f'<td class="{kinds}"{span}>{_text(cell.text)}</td>'
