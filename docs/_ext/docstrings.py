"""Docstrings here are plain text with formulas; make them safe to be read as reStructuredText."""

import re

from sphinx.application import Sphinx

_CODE = re.compile(r"(``[^`]*``|`[^`]*`)")
_MARKUP = re.compile(r"([\\*|])|_(?![A-Za-z0-9])")
_LIST = re.compile(r"^(\s*)(-\s|\d+\.(\s|$))")


def _escape(text: str) -> str:
    return _MARKUP.sub(lambda match: "\\" + match[0], text)


def _line(line: str) -> str:
    parts = _CODE.split(line)
    for index, part in enumerate(parts):
        parts[index] = f"``{part.strip('`')}``" if index % 2 else _escape(part)
    return _LIST.sub(r"\1\\\2", "".join(parts))


def _equations(lines: list[str]) -> list[str]:
    """Paragraphs of two or more lines that are all equations keep their line breaks."""
    blocks, block = [], []
    for line in [*lines, ""]:
        if line.strip():
            block.append(line)
            continue
        apart = len(block) > 1 and all(" = " in each for each in block)
        blocks += ["| " + each.strip() for each in block] if apart else block
        blocks.append("")
        block = []
    return blocks[:-1] if lines and lines[-1].strip() else blocks


def clean(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    example, cleaned = False, []
    for line in lines:  # an example ends with an empty line and stays as it is
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        cleaned.append(line if example else _line(line))
    lines[:] = _equations(cleaned)


_ARRAY = re.compile(
    r"~numpy\.ndarray\[tuple\[~typing\.Any, \.\.\.\], ~numpy\.dtype\[[~.\w]+(?:\[[~.\w]+\])?\]\]"
)
_ARRAY_LIKE = re.compile(r"~\S*_Buffer \| .*?_NestedSequence\[complex \| bytes \| str\]")


def _short(signature: str | None) -> str | None:
    return signature and _ARRAY_LIKE.sub("ArrayLike", _ARRAY.sub("ndarray", signature))


def shorten(app: Sphinx, what: str, name: str, obj: object, options: object, *parts: str | None) -> tuple:
    """Numpy's names for arrays in place of what they stand for."""
    signature, result = parts
    return _short(signature), _short(result)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", clean, priority=400)  # before napoleon reads "Args:"
    app.connect("autodoc-process-signature", shorten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
