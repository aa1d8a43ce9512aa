"""The mutants of a source file: each is one small error, at one place.

Left alone are docstrings, annotations, decorators, f-strings, assertions and whatever is raised.

>>> source = "half = 2 * x"
>>> [mutated(mutant, source) for mutant in find_mutants("half.py", source)]
['half = 3 * x', 'half = 1 * x', 'half = 2 / x']
"""

import ast
import random
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

OTHER_OPERATORS = {
    ast.Add: ("+", ["-"]),
    ast.Sub: ("-", ["+"]),
    ast.Mult: ("*", ["/"]),
    ast.Div: ("/", ["*"]),
    ast.FloorDiv: ("//", ["*"]),
    ast.Mod: ("%", ["*"]),
    ast.Pow: ("**", ["*"]),
    ast.BitAnd: ("&", ["|"]),
    ast.BitOr: ("|", ["&"]),
    ast.Lt: ("<", ["<=", ">"]),
    ast.LtE: ("<=", ["<", ">"]),
    ast.Gt: (">", [">=", "<"]),
    ast.GtE: (">=", [">", "<"]),
    ast.Eq: ("==", ["!="]),
    ast.NotEq: ("!=", ["=="]),
    ast.Is: ("is", ["is not"]),
    ast.IsNot: ("is not", ["is"]),
    ast.In: ("in", ["not in"]),
    ast.NotIn: ("not in", ["in"]),
    ast.And: ("and", ["or"]),
    ast.Or: ("or", ["and"]),
}
PREFIXES = {ast.USub: "-", ast.Not: "not ", ast.Invert: "~"}
PAIRS = [("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("any", "all")]
OTHER_NAMES = {name: other for a, b in PAIRS for name, other in ((a, b), (b, a))}
UNTESTED_KEYWORDS = {"strict"}  # of zip: a check of the library by itself
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Place = tuple[int, int]  # a line and a column, in bytes, as `ast` counts them


class Edit(NamedTuple):
    """New text for a part of a file."""

    start: Place
    end: Place
    text: str


class Mutant(NamedTuple):
    """A change of one place in a file.

    Attributes:
      file: the path of the file.
      edits: what is changed.
      covers: the lines of which a test must run one, or it cannot notice; none outside functions.
    """

    file: str
    edits: tuple[Edit, ...]
    covers: range

    @property
    def line(self) -> int:
        """Where the change is, counted from one."""
        return min(self.edits).start[0]

    @property
    def site(self) -> Place:
        """The place, which several mutants may share."""
        return min(self.edits).start


def find_mutants(file: str, source: str) -> list[Mutant]:
    """Every mutant of a source, by place."""
    lines = source.encode().splitlines(keepends=True)
    found = [
        Mutant(file, tuple(edits), covers)
        for node, covers in _expressions(ast.parse(source))
        for edits in _edits(node, lines)
    ]
    return sorted(found, key=lambda mutant: mutant.site)


def draw(mutants: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """So many mutants at random, no two of one place; fewer are the first of more."""
    rng, sites = random.Random(seed), defaultdict(list)
    for mutant in mutants:
        sites[mutant.file, mutant.site].append(mutant)
    chosen = [rng.choice(options) for options in sites.values()]
    rng.shuffle(chosen)
    return chosen[:count]


def mutated(mutant: Mutant, source: str) -> str:
    """The source with the error in it."""
    lines, text = source.encode().splitlines(keepends=True), source.encode()
    for start, end, new in sorted(mutant.edits, reverse=True):
        first, last = (sum(map(len, lines[: row - 1])) + column for row, column in (start, end))
        text = text[:first] + new.encode() + text[last:]
    return text.decode()


def shown(mutant: Mutant, source: str) -> tuple[str, str]:
    """The lines that change, before and after, each as one line."""
    before, after = source.splitlines(), mutated(mutant, source).splitlines()
    last = max(edit.end[0] for edit in mutant.edits)
    parts = before[mutant.line - 1 : last], after[mutant.line - 1 : len(after) - len(before) + last]
    return tuple(" ".join(" ".join(part).split()) for part in parts)


def _expressions(tree: ast.Module) -> Iterator[tuple[ast.AST, range]]:
    """The nodes that may be mutated, each with the lines that run it if it is in a function."""

    def visit(node: ast.AST, covers: range, inside: bool) -> Iterator[tuple[ast.AST, range]]:
        inside = inside or isinstance(node, FUNCTIONS)
        if isinstance(node, ast.stmt) and inside:
            covers = _covers(node)
        yield node, covers
        for child in _children(node):
            yield from visit(child, covers, inside)

    return visit(tree, range(0), False)


def _covers(statement: ast.stmt) -> range:
    """The lines of a statement, without those of its body unless it is a function."""
    end, body = statement.end_lineno or statement.lineno, getattr(statement, "body", None)
    if isinstance(statement, FUNCTIONS):
        return range(statement.body[0].lineno, end + 1)
    return range(statement.lineno, max(body[0].lineno if body else end + 1, statement.lineno + 1))


def _children(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom)):
        return []
    skipped = {"annotation", "returns", "decorator_list", "type_comment"}
    if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
        skipped.add("value")
    if isinstance(node, ast.keyword) and node.arg in UNTESTED_KEYWORDS:
        skipped.add("value")
    fields = [value for name, value in ast.iter_fields(node) if name not in skipped]
    flat = [x for value in fields for x in (value if isinstance(value, list) else [value])]
    return [child for child in flat if isinstance(child, ast.AST)]


def _edits(node: ast.AST, lines: list[bytes]) -> Iterator[list[Edit]]:
    """The ways to change a node itself, and not what is inside it."""
    match node:
        case ast.Constant(value=bool(value)):
            yield [_replace(node, repr(not value))]
        case ast.Constant(value=int(value)):
            yield [_replace(node, repr(value + 1))]
            if value > 0:
                yield [_replace(node, repr(value - 1))]
        case ast.Constant(value=float(value)):
            yield [_replace(node, repr(value * 1.25 if value else 1.0))]
            if value:
                yield [_replace(node, repr(value * 0.8))]
        case ast.BinOp(left=left, op=op, right=right):
            yield from _other_operators(op, left, right, lines)
            if isinstance(op, (ast.Add, ast.Sub)):  # a dropped term
                yield [_replace(node, f"({_text(left, lines)})")]
        case ast.BoolOp(op=op, values=[left, right, *_]):
            yield from _other_operators(op, left, right, lines)
        case ast.Compare(left=left, ops=[op, *_], comparators=[right, *_]):
            yield from _other_operators(op, left, right, lines)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in PREFIXES:
            if not isinstance(operand, ast.Constant) or isinstance(op, ast.USub):
                (row, column), prefix = _start(node), PREFIXES[type(op)]
                yield [Edit((row, column), (row, column + len(prefix)), "")]
        case ast.Call(func=func, args=arguments):
            yield from _calls(func, arguments, lines)


def _calls(func: ast.expr, arguments: list[ast.expr], lines: list[bytes]) -> Iterator[list[Edit]]:
    """Another function of the same arguments, or the last two arguments the other way round."""
    name = getattr(func, "attr", getattr(func, "id", ""))
    if name in OTHER_NAMES:
        row, column = _end(func)
        yield [Edit((row, column - len(name)), (row, column), OTHER_NAMES[name])]
    plain = (ast.Name, ast.Attribute)
    chosen = name == "where" and len(arguments) == 3
    if chosen or (len(arguments) == 2 and all(isinstance(x, plain) for x in arguments)):
        left, right = arguments[-2:]
        if name not in OTHER_NAMES:  # those are symmetric in their arguments
            texts = _text(left, lines), _text(right, lines)
            yield [_replace(left, texts[1]), _replace(right, texts[0])]


def _other_operators(
    op: ast.AST, left: ast.expr, right: ast.expr, lines: list[bytes]
) -> Iterator[list[Edit]]:
    """Another operator between two operands; between them are only it, brackets and spaces."""
    if type(op) not in OTHER_OPERATORS:
        return
    symbol, others = OTHER_OPERATORS[type(op)]
    for row in range(_end(left)[0], _start(right)[0] + 1):
        first = _end(left)[1] if row == _end(left)[0] else 0
        last = _start(right)[1] if row == _start(right)[0] else len(lines[row - 1])
        between = lines[row - 1][first:last].partition(b"#")[0]
        if (offset := between.find(symbol.encode())) >= 0:
            column = first + offset
            for other in others:
                yield [Edit((row, column), (row, column + len(symbol)), other)]
            return


def _start(node: ast.AST) -> Place:
    return node.lineno, node.col_offset


def _end(node: ast.AST) -> Place:
    return node.end_lineno, node.end_col_offset


def _replace(node: ast.AST, text: str) -> Edit:
    return Edit(_start(node), _end(node), text)


def _text(node: ast.AST, lines: list[bytes]) -> str:
    (row, column), (last_row, last) = _start(node), _end(node)
    parts = lines[row - 1 : last_row]
    parts[-1] = parts[-1][:last]
    parts[0] = parts[0][column:]
    return b"".join(parts).decode()
