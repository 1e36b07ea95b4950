"""The settings of Sphinx; `python docs/website` builds the site."""

import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from docutils import nodes

import assemble
import docstrings
import links
import reference_pages
from penchant.lab.report.math_font import FOLDER
from penchant.mathematics import mathml

project, author = "penchant", "the penchant developers"
copyright = "the penchant developers, MIT licence"
version = release = installed("penchant")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
templates_path = [str(Path(__file__).resolve().parent / "templates")]
exclude_patterns: list[str] = []

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "dollarmath"]
numpydoc_show_class_members = False
autodoc_typehints = "signature"
autodoc_type_aliases = {name: name for name in ("ArrayLike", "Array")}
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autosummary_context = {"uses": reference_pages.uses(assemble.pages())}
autosummary_filename_map = {  # `Watch` and `watch` are two files on every file system
    "penchant.Watch": "penchant.Watch-class"
}
python_maximum_signature_line_length = 88
highlight_language = "none"  # a block without a language is a command or an output

html_theme = "pydata_sphinx_theme"
html_title = "penchant"
html_static_path = ["static", str(FOLDER)]
html_css_files = ["style.css"]
html_js_files = ["copy.js"]
html_sidebars = {name: [] for name in ("index", "contributing", "changelog")}
html_copy_source = False
html_show_search_summary = False  # it would fetch pages, which a file cannot
html_context = {"default_mode": "auto"}
html_math_renderer = "mathml"
html_theme_options = {
    "header_links_before_dropdown": 9,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "navigation_with_keys": False,
    "pygments_light_style": "default",
    "pygments_dark_style": "github-dark",
}


def setup(app):
    app.connect("autodoc-process-docstring", docstrings.prepare, priority=100)
    app.connect("doctree-read", links.link)
    inline, block = (write_inline, None), (write_block, None)
    app.add_html_math_renderer("mathml", inline_renderers=inline, block_renderers=block)


def write_inline(translator, node):
    translator.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def write_block(translator, node):
    translator.body.append(mathml(node.astext(), "block"))
    raise nodes.SkipNode
