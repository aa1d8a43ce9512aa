"""The guide as a site: `python -m sphinx -W docs build/docs`."""

from importlib import metadata

project, author = "pgeom", "The pgeom developers"
release = version = metadata.version("pgeom")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme, html_title = "furo", f"pgeom {release}"
html_copy_source = html_show_copyright = False

myst_heading_anchors = 3  # so that pages may link to each other's headings

autodoc_typehints = "none"  # docstrings give the shapes
autodoc_member_order = "bysource"
default_role = "literal"  # docstrings write code between single backticks
napoleon_attr_annotations = False


def keep_bars(app, what, name, obj, options, lines):
    """Leave |x| in a formula as it is: reStructuredText would take it for a substitution."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith(">>>"):
            parts = line.split("`")  # every second one is code
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[number] = "`".join(parts)


def setup(app):
    app.connect("autodoc-process-docstring", keep_bars)
