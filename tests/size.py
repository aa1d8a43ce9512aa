"""How large the project is, in syntax nodes without docstrings: `python -m tests.size`."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def count_nodes(source: str) -> int:
    """Every node of a source but those of its docstrings."""
    nodes = [*ast.walk(ast.parse(source))]
    documented = (node for node in nodes if isinstance(node, DOCUMENTED))
    return len(nodes) - 2 * sum(ast.get_docstring(node) is not None for node in documented)


def main() -> None:
    rooms = [path for path in sorted(ROOT.glob("pgeom/*/")) if any(path.glob("*.py"))]
    for room in (
        *rooms,
        *(
            ROOT / name
            for name in ("pgeom", "experiments", "benchmarks", "proofs_numeric", "tests")
        ),
    ):
        files = [*room.rglob("*.py")]
        nodes = sum(count_nodes(file.read_text()) for file in files)
        print(f"{room.relative_to(ROOT).as_posix():24}{nodes:>9,} nodes {len(files):>5} files")


if __name__ == "__main__":
    main()
