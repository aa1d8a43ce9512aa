"""Constructors of expressions, which rewrite by identities of the real numbers.

Equal things look equal: sums are flattened, products are collected by base, log Σ exp is one
operation, and a maximum that was subtracted for the sake of rounding, as `logsumexp` and
`logaddexp` do, is gone.

>>> g = Graph(3); x = g.p(0)
>>> g.mul(x, g.lin([(ONE, g.log(x))], fmpq(2))).op, g.exp(g.scale(3, g.log(x))).op
('lin', 'mono')
"""

from functools import cache
from itertools import combinations, permutations

from flint import fmpq

from pgeom.certificates.expression import (
    ONE,
    ZERO,
    Node,
    are_opposite,
    coefficient,
    constant,
    factors,
    is_affine,
    is_constant,
    is_even,
    is_multiple,
    is_rational,
    is_root,
    is_softplus,
    terms,
)

RAMP = fmpq(9, 8)  # the least power of max(·, 0) that is an operation of its own


class Graph:
    """Makes the nodes of one expression over K classes, each of them once.

    `sign(x)` is 1 if x ≥ 0 and not 0 everywhere, −1 if x ≤ 0, 0 if x = 0, None if none is known.
    """

    def __init__(self, K, sign=None):
        self.K = K
        self._table = {}
        self.is_at_least = cache(self._is_at_least)
        self.sign = sign or (lambda x: 1 if x.op in ("p", "exp") else None)

    def node(self, op, args=(), data=()):
        """The node itself, without any rewriting."""
        key = (op, tuple(x.index for x in args), tuple(data))
        if key not in self._table:
            self._table[key] = Node(len(self._table), op, tuple(args), key[2])
        return self._table[key]

    def p(self, k: int):
        return self.node("p", (), (k,))

    def const(self, value):
        return self.node("lin", (), (fmpq(value),))

    def add(self, *summands: Node):
        return self.lin([(ONE, x) for x in summands])

    def sub(self, x, y):
        return self.lin([(ONE, x), (-ONE, y)])

    def scale(self, factor: fmpq | int, x):
        return self.lin([(fmpq(factor), x)])

    def lin(self, summands, const=ZERO):
        """const + Σ c·x of pairs (c, x), flattened and collected."""
        pairs = list(summands)
        total = const + sum(c * constant(x) for c, x in pairs)
        sums = collect((y, c * d) for c, x in pairs for d, y in terms(x))
        if (joined := cancel_shift(self, sums)) is not None:
            return self.lin(joined, total)
        if total == 0 and len(sums) == 1 and ONE in sums.values():
            return next(iter(sums))
        kept = sorted(sums, key=lambda x: x.index)
        return self.node("lin", kept, (total, *(sums[x] for x in kept)))

    def softplus(self, x):
        """log(eˣ + 1)."""
        return self.node("lse", (x, self.const(0)), (ONE, ONE))

    def mul(self, x, y):
        for a, b in ((x, y), (y, x)):
            if is_rational(a):
                return self.scale(a.data[0], b)
            if is_multiple(a):
                return self.scale(a.data[1], self.mul(a.args[0], b))
            if b.op == "lin" and _distributes(a, b):
                return self.lin([(b.data[0], a), *((c, self.mul(a, z)) for c, z in terms(b))])
        return self.mono([(x, ONE), (y, ONE)])

    def power(self, x, r):
        if r == 2 and x.op == "lin" and len(x.args) <= 2 and all(map(is_root, x.args)):
            parts = [*terms(x), (constant(x), self.const(1))]  # (√p − √q)² term by term
            return self.lin([(a * b, self.mul(y, z)) for a, y in parts for b, z in parts])
        return self.mono([(x, fmpq(r))])

    def mono(self, powers):
        """Π x^r, collected by base; a rational factor becomes the coefficient of a sum."""
        ratio, simple, exponent, todo = ONE, [], [], list(powers)
        while todo:
            x, r = todo.pop()
            c, simpler = self._simpler_power(x, r)
            ratio *= c
            if simpler is not None:
                todo += simpler
            elif x.op == "exp":
                exponent.append((r, x.args[0]))
            else:
                simple.append((x, r))
        bases = collect(simple)
        for x in [
            x for x in bases if is_multiple(x) and bases.get(x.args[0], ONE / 2).denominator == 1
        ]:
            ratio *= x.data[1] ** -int(bases[x.args[0]])  # p·(c·p)^s = (c·p)^{s + 1}/c
            bases[x] += bases.pop(x.args[0])
        bases = self._with_logarithms(collect(bases.items()))
        if exponent:  # e^x (Σ e^{x_j})^r = exp(x + r·lse(x_j)), in which a maximum cancels
            sums = {x: r for x, r in bases.items() if self.exponentials(x) is not None}
            exponent += [(r, self.log(x)) for x, r in sums.items()]
            bases = {x: r for x, r in bases.items() if x not in sums}
            grown = self.exp(self.lin(exponent))
            if grown.op != "exp":
                return self.scale(ratio, self.mul(grown, self._product(bases)))
            bases[grown] = ONE
        return self.scale(ratio, self._product(bases))

    def _product(self, bases):
        if not bases:
            return self.const(1)
        for x, r in bases.items():
            pieces = exclusive_pieces(self, x) if x.op == "max" and r >= RAMP else []
            rest = {z: s for z, s in bases.items() if z is not x}
            if pieces and (len(pieces) == 1 or not rest):
                ramps = [self.node("ramp", (y,), (r,)) for y in pieces]
                return self.add(*ramps) if not rest else self._product({**rest, ramps[0]: ONE})
        if len(bases) == 1 and ONE in bases.values():
            return next(iter(bases))
        kept = sorted(bases, key=lambda x: (is_constant(x), x.index))
        return self.node("mono", kept, [bases[x] for x in kept])

    def _simpler_power(self, x, r):
        """x^r as a rational number times powers of simpler bases, or None where it is simple."""
        whole = r.denominator == 1
        if is_rational(x) and (x.data[0] == 1 or r > 0 == x.data[0] or (whole and x.data[0])):
            return x.data[0] ** int(r.ceil()), []
        if x.op == "mono" and (whole or all(self.sign(y) == 1 for y in x.args)):
            return ONE, [(y, s * r) for y, s in factors(x)]
        if x.op == "max" and is_even(r) and x.args[0] is self.scale(-1, x.args[1]):
            return ONE, [(x.args[0], r)]  # |x|² = x²
        if is_multiple(x) and (whole or x.data[1] > 0):
            c, y = x.data[1], x.args[0]
            return (c ** int(r), [(y, r)]) if whole else (ONE, [(self.const(c), r), (y, r)])
        if x.op == "lin" and x.args and whole and self.sign(x) == -1:
            return fmpq(-1) ** int(r), [(self.scale(-1, x), r)]
        return ONE, None

    def _with_logarithms(self, bases):
        """x·log x as one function, which is 0 at 0."""
        for log in [y for y in bases if y.op == "log"]:
            x = log.args[0]
            if bases[log] == bases.get(x) == 1:
                rest = {y: s for y, s in bases.items() if y is not x and y is not log}
                return {**rest, self.node("xlogx", (x,)): ONE}
        return bases

    def exponentials(self, x) -> list[tuple[fmpq, Node]] | None:
        """The pairs (c, y) of x = Σ c·exp y with all c > 0, or None if it is no such sum."""
        pairs = terms(x)
        if not pairs or constant(x) < 0 or any(c < 0 or y.op != "exp" for c, y in pairs):
            return None
        rest = [(constant(x), self.const(0))] if constant(x) else []
        return [(c, y.args[0]) for c, y in pairs] + rest

    def exp(self, x):
        if x.op == "lse":
            return self.lin([(c, self.exp(y)) for c, y in zip(x.data, x.args, strict=True)])
        if is_rational(x) and x.data[0] == 0:
            return self.const(1)
        logs = [(y.args[0], c) for c, y in terms(x) if y.op == "log"]
        if not logs:
            return self.node("exp", (x,))
        rest = self.lin([(c, y) for c, y in terms(x) if y.op != "log"], constant(x))
        return self.mono([*logs, (self.exp(rest), ONE)])

    def log(self, x):
        if is_rational(x) and x.data[0] == 1:
            return self.const(0)
        if (sums := self.exponentials(x)) is not None:
            return self.lse(sums)
        if x.op == "mono" and all(self.sign(y) == 1 for y in x.args):
            return self.lin([(r, self.log(y)) for y, r in factors(x)])
        if is_multiple(x) and x.data[1] > 0:
            factor = self.node("log", (self.const(x.data[1]),))
            return self.add(self.log(x.args[0]), factor)
        return self.node("log", (x,))

    def lse(self, summands):
        """log Σ c·exp x for c > 0."""
        sums = collect((x, c) for c, x in summands)
        if len(sums) == 1 and ONE in sums.values():
            return next(iter(sums))
        if len(sums) == 2 and len(set(sums.values())) == 1:
            for x, y in permutations(sums):
                if is_rational(y) or (is_affine(y) and is_affine(x)):
                    return self.add(self.log(self.const(sums[x])), y, self.softplus(self.sub(x, y)))
        kept = sorted(sums, key=lambda x: x.index)
        return self.node("lse", kept, [sums[x] for x in kept])

    def absolute(self, x):
        return self.maximum(x, self.scale(-1, x))

    def maximum(self, *args):
        """The largest, without those that another one never falls below."""
        kept = maximal(self, args)
        return kept[0] if len(kept) == 1 else self.node("max", kept)

    def _is_at_least(self, x, y):
        """Whether x ≥ y everywhere is known; never of two probabilities.

        Each answer is kept, because a maximum over many classes is read one argument after another.
        """
        return not x.op == y.op == "p" and self.sign(self.sub(x, y)) in (0, 1)


def collect(pairs) -> dict[Node, fmpq]:
    """The sums of c over the pairs (x, c) with the same x, where they are not zero."""
    sums = {}
    for x, c in pairs:
        sums[x] = sums.get(x, ZERO) + c
    return {x: c for x, c in sums.items() if c}


def _distributes(x, total):
    """Whether x times a sum is simpler term by term: for x log x, powers of x, and x(1 − x)."""

    def inner(y):
        bases = [z.args[0] if is_multiple(z) else z for z, _ in factors(y)]
        return any(z is x or (z.op == "log" and z.args[0] is x) for z in bases if z is not y) or (
            y.op == "log" and y.args[0] is x
        )

    return any(map(inner, total.args)) or (bool(total.args) and all(y is x for y in total.args))


def cancel_shift(graph, sums):
    """c·f(x) + c·y as c·f(x + y) for a log-sum-exp f where y then cancels, else None."""
    for x, c in sums.items():
        if is_softplus(x) and (turned := _flip_softplus(graph, sums, x, c)) is not None:
            return turned
        if x.op == "lse":
            for y, other in sums.items():
                if (moved := _shift_log_sum(graph, x, y, other / c)) is not None:
                    rest = [(d, z) for z, d in sums.items() if z is not x and z is not y]
                    return [(c, moved), *rest]
    return None


def _flip_softplus(g, sums, x, c):
    """log(1 + e^y) = y + log(1 + e^{−y}), if all of y but its affine part then cancels."""
    y = x.args[0]
    inner = [(d, z) for d, z in terms(y) if z.op != "p"]
    if not inner or any(sums.get(z) != -c * d for d, z in inner):
        return None
    gone = {z for _, z in inner} | {x}
    rest = [(d, z) for z, d in sums.items() if z not in gone]
    affine = g.lin([(d, z) for d, z in terms(y) if z.op == "p"], constant(y))
    return [(c, g.softplus(g.scale(-1, y))), (c, affine), *rest]


def _shift_log_sum(g, x, y, factor):
    """f(x) + factor·y, if it is simpler."""
    if y is x or y.op == "p":
        return None
    if any(coefficient(arg, y) == -factor for arg in x.args):
        if is_softplus(x):
            return None
        shifted = [g.lin([(ONE, arg), (factor, y)]) for arg in x.args]
        return g.lse(zip(x.data, shifted, strict=True))
    if is_softplus(x) and y.op == "max" and factor == 1 and len(y.args) == 2:
        gap = g.scale(-1, g.absolute(g.sub(*y.args)))
        if x.args[0] is gap:
            return g.lse((ONE, arg) for arg in y.args)  # max(a, b) + log(1 + e^{−|a−b|})
    return None


def maximal(graph, args) -> list[Node]:
    """The arguments of a maximum, without those that another one never falls below."""
    kept = []
    flat = [y for x in args for y in _maximum_arguments(graph, x)]
    for x in dict.fromkeys(flat):
        if not any(graph.is_at_least(y, x) for y in kept):
            kept = [y for y in kept if not graph.is_at_least(x, y)] + [x]
    return sorted(kept, key=lambda x: x.index)


def exclusive_pieces(graph, x) -> list[Node]:
    """The y_i of max(y_1, …, 0), or of |y|, if no two are positive at a point; else nothing.

    Then max(y_1, …, 0)^r = Σ max(y_i, 0)^r.
    """
    zero = graph.const(0)
    if zero not in x.args and not (len(x.args) == 2 and are_opposite(*x.args)):
        return []
    pieces = [y for y in x.args if y is not zero]
    signs = (graph.sign(graph.add(y, z)) for y, z in combinations(pieces, 2))
    return pieces if all(sign in (-1, 0) for sign in signs) else []


def _maximum_arguments(graph, x):
    """The y_i of max(y_1, …), or of an affine function plus a multiple of it."""
    tops = [(c, y) for c, y in terms(x) if y.op == "max"]
    rest = [(c, y) for c, y in terms(x) if y.op != "max"]
    if len(tops) != 1 or tops[0][0] < 0 or any(y.op != "p" for _, y in rest):
        return (x,)
    ((c, top),) = tops
    return [graph.lin([(c, y), *rest], constant(x)) for y in top.args]
