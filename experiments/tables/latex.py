"""Tables as LaTeX, in the form of the paper's: booktabs, the best of a column in bold.

>>> escape("40% of β₀ ± 1_a ↑")
'40\\\\% of $\\\\beta$$_0$ $\\\\pm$ 1\\\\_a $\\\\uparrow$'
"""

from experiments.tables.grid import Grid

SIGNS = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "%&_#${}"},
    **{sign: f"{{{sign}}}" for sign in "[]*"},  # which a line break would take for its own
    **{sign: f"${sign}$" for sign in "<>"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "Δ": r"$\Delta$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "⁻": "$^{-}$",
    **{sign: f"$^{power}$" for power, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    "×": r"$\times$",
    "√": r"$\surd$",
    "−": "$-$",
    "–": "--",
    "β": r"$\beta$",
    "η": r"$\eta$",
    "‖": r"$\|$",
    "₀": "$_0$",
    "|": r"$|$",
}


def escape(text: str) -> str:
    """Plain text as LaTeX source, with spaces for line breaks and other characters TeX may obey."""
    return "".join(SIGNS.get(sign, sign if sign.isprintable() else " ") for sign in text)


def to_latex(grid: Grid, label: str) -> str:
    """A grid as a table float with the paper's label."""
    lines = [
        r"\begin{table}[t]",
        rf"\caption{{{escape(_sentence(grid))}}}",
        rf"\label{{tab:{label}}}",
        r"\centering\small",
        rf"\begin{{tabular}}{{l{'r' * (len(grid.header) - 1)}}}",
        r"\toprule",
        _row([escape(name) for name in grid.header]),
        r"\midrule",
    ]
    for row, texts in enumerate(grid.rows):
        marked = (
            rf"\textbf{{{escape(text)}}}" if (row, column) in grid.best else escape(text)
            for column, text in enumerate(texts)
        )
        lines.append(_row(marked))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def to_latex_figure(label: str, caption: str) -> str:
    """A figure float with the paper's label, for the PDF that lies beside it."""
    lines = [
        r"\begin{figure}[t]",
        r"\centering",
        rf"\includegraphics[width=\linewidth]{{{label}.pdf}}",
        rf"\caption{{{escape(caption)}}}",
        rf"\label{{fig:{label}}}",
        r"\end{figure}",
        "",
    ]
    return "\n".join(lines)


def _sentence(grid: Grid) -> str:
    return ". ".join([grid.title[:1].upper() + grid.title[1:], *grid.footnotes]) + "."


def _row(texts) -> str:
    return " & ".join(texts) + r"\\"
