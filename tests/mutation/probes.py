"""Probes: statements in a copy of the library that note which of its lines have run.

Cheaper than a trace function, which would be called for every function of JAX as well.

>>> source = "def half(x):\\n    if x:\\n        return x / 2\\n"
>>> exec(with_probes("half.py", source))
>>> _ = half(0), half(0)
>>> read_lines()["half.py"]
[2]
>>> clear()
>>> read_lines()
{}
"""

import ast
import builtins
from collections import defaultdict

NOTEBOOK = "lines_that_ran"
PROBE = f"__import__('builtins').__dict__.setdefault({NOTEBOOK!r}, set()).add(({{!r}}, {{}}))"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BLOCKS = ("body", "orelse", "finalbody")


def with_probes(file: str, source: str) -> str:
    """The source with a probe before every statement of its functions.

    One that has none, only constants, has a probe at its end, which notes line 0.
    """

    def visit(node: ast.AST, inside: bool) -> None:
        inside = inside or isinstance(node, FUNCTIONS)
        for child in ast.iter_child_nodes(node):
            visit(child, inside)
        for block in BLOCKS:
            statements = getattr(node, block, None)
            if inside and isinstance(statements, list):
                setattr(node, block, list(_probed(file, statements)))

    tree = ast.parse(source)
    if not any(isinstance(node, FUNCTIONS) for node in ast.walk(tree)):
        tree.body += ast.parse(PROBE.format(file, 0)).body
    visit(tree, inside=False)
    return ast.unparse(ast.fix_missing_locations(tree))


def read_lines() -> dict[str, list[int]]:
    """The lines that have run in this process since the last `clear`, by file."""
    lines = defaultdict(list)
    for file, line in sorted(getattr(builtins, NOTEBOOK, ())):
        lines[file].append(line)
    return dict(lines)


def clear() -> None:
    """Forget which lines have run."""
    getattr(builtins, NOTEBOOK, set()).clear()


def _probed(file: str, statements: list[ast.stmt]):
    for statement in statements:
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            yield ast.parse(PROBE.format(file, statement.lineno)).body[0]
        yield statement  # a docstring stays first
