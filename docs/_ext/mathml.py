"""Formulas as MathML, made while building by the converter in docutils: no script, no download."""

import re

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx
from sphinx.util.math import get_node_equation_number

_FENCE = re.compile(r"(?<!\\left)(?<!\\right)\\(langle|rangle|lvert|rvert|lVert|rVert)(?![A-Za-z])")


def _fences(tex: str) -> str:
    """Brackets that belong together become one group: they stretch and carry exponents as one."""
    return _FENCE.sub(lambda match: rf"\{'left' if match[1][0] == 'l' else 'right'}\{match[1]} ", tex)


def _polish(mathml: str) -> str:
    """A bar that keeps its distance, and a true prime: fonts without mathematics need both."""
    mathml = re.sub(r"<mo[^>]*>'</mo>", '<mo lspace="0" rspace="0">\N{PRIME}</mo>', mathml)
    return mathml.replace("\N{MODIFIER LETTER MACRON}", "\N{MACRON}")


def _convert(translator, node: nodes.Element, block: bool) -> str:
    try:
        return _polish(latex2mathml.tex2mathml(_fences(node.astext()), as_block=block))
    except SyntaxError as error:  # with -W the build fails here, at the formula
        raise SyntaxError(f"{node.source}:{node.line}: {error} in {node.astext()!r}") from error


def visit_inline(translator, node: nodes.math) -> None:
    translator.body.append(_convert(translator, node, block=False))
    raise nodes.SkipNode


def visit_block(translator, node: nodes.math_block) -> None:
    translator.body.append(translator.starttag(node, "div", CLASS="formula"))
    translator.body.append('<div class="formula-body">')
    translator.body.append(_convert(translator, node, block=True))
    translator.body.append("</div>")
    if node.get("number"):
        number = get_node_equation_number(translator, node)
        translator.body.append(f'<span class="eqno">({number})')
        translator.add_permalink_ref(node, "Link to this equation")
        translator.body.append("</span>")
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
