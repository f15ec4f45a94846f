"""The page needs nothing but itself, and its twin says the same."""

import re
from html.parser import HTMLParser

import pytest

from primaldepth.report.blocks import (
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
from primaldepth.report.markdown import to_markdown
from primaldepth.report.report_files import to_html

VOID = {"meta", "link", "img"}


class Reader(HTMLParser):
    """Collects tags, attributes and text; fails where tags do not nest."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture
def document():
    cells = (Cell("he10", "name"), Cell("1.50", "published", "second"), Cell("1.25", mark="best"))
    absent = (Cell("a<b", "name"), Cell("no weights yet", "absent", span=2))
    columns = (TableColumn("method"), TableColumn("paper", "Art"), TableColumn("ours", "Art"))
    table = Table(columns, (TableRow(cells), TableRow(absent, rule=True)), "x8")
    pictures = tuple(Picture(f"p{i}", "png", b"\x89PNG", f"picture {i}", f"label {i}") for i in range(6))
    plot = Picture("plot", "svg", b"<svg/>", "a plot")
    blocks = (
        Paragraph("The [[best]] & the [[second]], Δ_a of `code`."),
        Paragraph("Missing.", notice=True),
        table,
        SideBySide((table, table)),
        Gallery((plot,), 1, caption="Below."),
        Gallery(pictures, 4, "Art"),
    )
    return Document("A < B", "Lead.", (Section("First", "first", blocks),), "Foot.")


def test_page_nests_and_loads_nothing(document):
    reader = Reader()
    page = to_html(document)
    reader.feed(page)
    assert reader.open == []
    sources = [attrs["src"] for tag, attrs in reader.tags if tag == "img"]
    assert len(sources) == 7
    assert all(source.startswith("data:image/") for source in sources)
    links = [attrs["href"] for tag, attrs in reader.tags if "href" in attrs]
    assert all(link.startswith(("#", "data:")) for link in links)
    assert "url(" not in page
    assert "@import" not in page
    assert not any(tag in ("script", "iframe") for tag, _ in reader.tags)


def test_page_is_fit_for_phones_and_for_those_who_cannot_see(document):
    reader = Reader()
    reader.feed(to_html(document))
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in reader.tags
    assert all(attrs.get("alt") for tag, attrs in reader.tags if tag == "img")
    assert any(attrs.get("lang") == "en" for tag, attrs in reader.tags if tag == "html")


def test_every_row_is_as_wide_as_its_table(document):
    for table in re.findall(r"<table>.*?</table>", to_html(document), re.DOTALL):
        for line in re.findall(r"<tr.*?</tr>", table, re.DOTALL):
            spans = re.findall(r'<t[dh][^>]*?(?:colspan="(\d+)")?>', line)
            assert sum(int(span or 1) for span in spans) == 3
    for line in to_markdown(document).splitlines():
        if line.startswith("| `"):
            assert line.count(" |") == 3


def test_words_are_escaped_and_marked(document):
    page, twin = to_html(document), to_markdown(document)
    assert "<h1>A &lt; B</h1>" in page
    assert "<code>a&lt;b</code>" in page
    assert '<span class="key second">second best</span>, Δ<sub>a</sub> of <code>code</code>' in page
    assert '<td class="number best">1.25</td>' in page
    assert '<td class="published second start">1.50</td>' in page
    assert "The **best** & the *second best*, Δ<sub>a</sub> of `code`." in twin
    assert "| `he10` | *1.50* | **1.25** |" in twin
    assert "> Missing." in twin


def test_twin_has_the_same_sections_tables_and_pictures(document):
    twin = to_markdown(document)
    assert twin.count("| method | Art paper | Art ours |") == 3
    assert "## First" in twin
    assert "### Art" in twin
    for picture in document.pictures():
        assert f"](figures/{picture.name}.{picture.suffix})" in twin
