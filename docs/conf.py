"""Sphinx configuration; everything it needs is in the `docs` extra, nothing is fetched while building."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from primaldepth.version import __version__

project = "primaldepth"
author = "The primaldepth authors"
copyright = "The primaldepth authors, BSD-3-Clause"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinxcontrib.bibtex",
    "mathml",
    "tables",
    "docstrings",
]
exclude_patterns = ["_build", "_ext"]
myst_enable_extensions = ["dollarmath", "tasklist"]
myst_heading_anchors = 3
myst_dmath_double_inline = False
bibtex_bibfiles = ["refs.bib"]
bibtex_default_style = "unsrt"

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
add_module_names = False
napoleon_numpy_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"primaldepth {release}"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_math_renderer = "mathml"
html_show_sphinx = False
html_copy_source = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"
