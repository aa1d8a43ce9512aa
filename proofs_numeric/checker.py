"""Verify a certificate of `pgeom.certify` without JAX: `python -m proofs_numeric.checker FILE`.

All is recomputed in ball arithmetic: that cells cover the simplex, a matrix L with H ⪰ L on each,
L ⪰ m on tangents, every rule, D_F(q, p) < 0. Exit code 0: verified, 1: refused, 2: bad input.
"""

import hashlib
import json
import sys
from fractions import Fraction
from itertools import product, repeat
from pathlib import Path

from flint import arb, arb_series, ctx, fmpq, fmpq_mat

STEPS, ZERO, ONE, INF, NAN = 3_000, fmpq(0), fmpq(1), arb.pos_inf(), arb.nan()
LOW, TOP = {"mono": -(10**6), "ramp": 2, "lse": 0}, {"mono": 10**6, "ramp": 10**6}
FUNCTIONS = dict.fromkeys(("exp", "log", "sin", "cos", "xlogx"), (1, 0))


def need(condition, what):
    if not condition:
        raise ArithmeticError(what)


def exact(number):
    need({*str(number)} <= {*"-/0123456789"} and len(str(number)) < 8000, "a numeral")
    return fmpq(*Fraction(number).as_integer_ratio())


def dot(form, point):
    return sum((form[k] * x for k, x in point.items()), ZERO)


def semidefinite(rows):
    rows = [list(row) for row in rows]  # by elimination; a pivot may be zero if its column is
    for k, top in enumerate(rows):
        if not (top[k] > 0 or (top[k] == 0 and all(row[k] == 0 for row in rows[k:]))):
            return False
        for row in rows[k + 1 :] if top[k] > 0 else ():
            factor = row[k] / top[k]
            row[k:] = [a - factor * b for a, b in zip(row[k:], top[k:], strict=True)]
    return True


def at_least(L, m):
    *both, n = range(len(L))  # dᵀLd ≥ m‖d‖² for all d with Σd = 0, in the basis e_i − e_K
    cut = [[L[i][j] - L[i][n] - L[n][j] + L[n][n] - m * (1 + (i == j)) for j in both] for i in both]
    return semidefinite([map(arb, row) if n > 11 else row for row in cut])


class Expression:
    def __init__(self, K, rows):  # [operation, arguments, constants], the last one of which is F
        need(type(K) is int and K >= 2, "the number of classes")
        self.K, self.corners, self.rows, self.forms = K, [{k: ONE} for k in range(K)], [], []
        self.lines, self.strict = [], []  # what w·p a row depends on; F strictly convex if v·d ≠ 0
        for op, args, data in rows:
            need(all(type(j) is int and 0 <= j < len(self.rows) for j in args), "earlier rows")
            data, lines = [exact(x) for x in data], {w for j in args for w in self.lines[j]}
            n, free = len(args), op in ("affine", "quadratic")
            sizes = {"affine": (0, K), "lin": (n, n + 1), "quadratic": (n, n * n), "max": (n, 0)}
            sizes |= {"mono": (n, n), "lse": (n, n), "ramp": (1, 1), **FUNCTIONS}
            need((n, len(data)) == sizes.get(op) and (n or op == "affine"), f"the size of {op}")
            fine = (x != 0 and LOW.get(op, x) <= x <= TOP.get(op, x) for x in data[op == "lin" :])
            symmetric = (data[k * n : k * n + n] == data[k::n] for k in range(n))
            need(all(symmetric if free else fine), f"the constants of {op}")
            if op == "affine" and min(data) < max(data):
                w = tuple((x - min(data)) / (max(data) - min(data)) for x in data)
                lines = {min(w, tuple(1 - x for x in w))}
            self.rows.append((op, args, data))
            self.forms.append(data if op == "affine" else None)
            self.lines.append(lines | ({"kink"} if op in ("max", "ramp") else set()))

    def series(self, i, points, d, known):
        if i in known:  # value, slope, half the second derivative along d around a hull of points
            return known[i]
        op, args, data = self.rows[i]
        xs = [self.series(j, points, d, known) for j in args]
        if op in ("max", "ramp"):
            xs += [arb_series([0])] * (op == "ramp")
            able = [x for x in xs if not any(x[0] < y[0] for y in xs)]
            xs, data = able if len(able) == 1 else [arb_series([NAN] * 3)], data or [ONE]
        if op == "affine":
            ends = [dot(data, p) for p in points]
            value = arb_series([arb(min(ends)).union(arb(max(ends))), arb(dot(data, d))])
        elif op == "lin":
            value = data[0] + sum(x * c for c, x in zip(data[1:], xs, strict=True))
        elif op in ("mono", "max", "ramp"):
            value = arb_series([1])
            for x, r in zip(xs, data, strict=True):
                value *= x ** int(r) if r.q == 1 else (x.log() * r).exp()
        elif op == "quadratic":
            value = sum(x * y * q for (x, y), q in zip(product(xs, xs), data, strict=True))
        elif op == "lse":
            value = sum((x.exp() * c for c, x in zip(data, xs, strict=True)), arb_series([0])).log()
        else:
            value = xs[0] * xs[0].log() if op == "xlogx" else getattr(xs[0], op)()
        return known.setdefault(i, value)

    def positive(self, i):
        op, args, data = self.rows[i]  # whether it is positive wherever all p_k are
        if op in ("mono", "affine") or (op == "lin" and min(data) >= 0 and min(data[1:]) > 0):
            return all(map(self.positive, args)) and (op != "affine" or min(data) >= 0 < max(data))
        return op == "exp" or self.series(i, self.corners, {}, {})[0] > 0

    def least(self, c, i, points, d):
        op, args, data = self.rows[i]  # from below: the second derivative of c·x along d
        forms, r = [self.forms[j] for j in args], data[0] if data else fmpq(op == "xlogx")
        soft = op == "lse" and data == [1, 1] and all(forms)  # log(1 + e^x), but for an affine term
        form = [x - y for x, y in zip(*forms, strict=True)] if soft else forms[0]
        ends = [dot(form, p) for p in points] if form and (soft or len(args) == 1) else []
        whole = op == "mono" and r.q == 1 and r >= 2  # f″ is monotone on either side of 0
        inside = op in ("mono", "log", "xlogx") and self.positive(args[0])
        if not (ends and (soft or whole or op == "ramp" or inside)):
            return (2 * c * self.series(i, points, d, {})[2]).lower()
        factor = {"log": -c, "xlogx": c, "lse": c}.get(op, c * r * (r - 1)) * dot(form, d) ** 2
        ends += [ZERO] * (min(ends) < 0 < max(ends))
        zero, e = INF if r < 2 else arb(0), int(r - 2) if whole else arb(r - 2)
        bends = [factor * (arb(x) ** e if whole or x > 0 else zero) for x in ends]
        if soft:
            bends = [factor / (2 + arb(x).exp() + arb(-x).exp()) for x in ends]
        return NAN if any(x.is_nan() for x in bends) else min(x.lower() for x in bends)

    def ridge(self, chosen, bend, cell, strictly):
        """bend·wwᵀ, where the terms are a function φ of w·p alone and φ″ ≥ bend on the cell."""
        lines = {w for _, i in chosen for w in self.lines[i]}
        (w,) = lines - {"kink"}
        a, b, values = w.index(0), w.index(1), [dot(w, p) for p in cell]
        todo, d, steps = [(min(values), max(values))], {a: -ONE, b: ONE}, 0
        while todo:
            (low, high), steps = todo.pop(), steps + 1
            ends = [{a: 1 - u, b: u} for u in (low, high)]
            if not sum((self.least(c, i, ends, d) for c, i in chosen), arb(0)) >= bend:
                need(steps < STEPS, "the bound of a ridge")
                todo += [(low, (low + high) / 2), ((low + high) / 2, high)]
        point = [{a: fmpq(5, 7), b: fmpq(2, 7)}]  # an analytic φ″ ≥ 0 has isolated zeros
        bend_there = sum((c * self.series(i, point, d, {})[2] for c, i in chosen), arb(0))
        self.strict += [w] if strictly and "kink" not in lines and bend_there > 0 else []
        return [[bend * x * y for y in w] for x in w]

    def quadratic(self, c, i, cell):
        op, args, data = self.rows[i]  # xᵀQx with affine x
        need(op == "quadratic", "quadratic")
        V = fmpq_mat([self.forms[j] for j in args])
        return (2 * c * V.transpose() * fmpq_mat(len(args), len(args), data) * V).tolist()

    def length(self, c, i, cell):
        """c·√(pᵀQp): on tangents Q/(s·(pᵀQp)^{3/2}) ⪯ H ⪯ √s·Q where s = 1ᵀQ⁻¹1."""
        op, args, data = self.rows[i]
        Q = self.quadratic(fmpq(1, 2), args[0], cell)
        need(op == "mono" and data == [fmpq(1, 2)] and semidefinite(Q), "a length")
        s = sum(fmpq_mat(Q).solve(fmpq_mat([[1]] * self.K)).entries(), ZERO)
        size = arb(max(dot([dot(row, p) for row in Q], p) for p in cell))
        factor = arb(c / s) / (size * size.sqrt()) if c > 0 else c * arb(s).sqrt()
        return [[factor * x for x in row] for row in Q]

    def hessian(self, c, i, cell):
        L, n = [[ZERO] * self.K for _ in range(self.K)], self.K - 1  # in the basis e_j − e_K
        squares = [2 * c * self.series(i, cell, {j: ONE, n: -ONE}, {})[2] for j in range(n)]
        for j, k in product(range(n), repeat=2):
            both = 2 * c * self.series(i, cell, {j: ONE, k: ONE, n: -2 * ONE}, {})[2]
            L[j][k] = squares[j] if j == k else (both - squares[j] - squares[k]) / 2
        return L

    def bound(self, chosen, proof, cell, bends, strictly):
        """L with dᵀHd ≥ dᵀLd along tangents d on the cell, H the Hessian of Σ c·x."""
        rule, L = proof["rule"], [[ZERO] * self.K] * self.K
        if rule == "ridge":
            return self.ridge(chosen, exact(next(bends)), cell, strictly)
        ((c, i),) = chosen
        if rule in ("quadratic", "length", "hessian"):
            return getattr(self, rule)(c, i, cell)
        if rule != "sum":
            return self.compose(1 if c > 0 else -1, i, proof, strictly) or L
        op, args, data = self.rows[i]
        terms = list(zip(data[1:], args, strict=True)) if op == "lin" else [(ONE, i)]
        taken = sorted(t for part in proof["parts"] for t in part["terms"])
        need(taken == [t for t, (_, j) in enumerate(terms) if not self.forms[j]], "all terms")
        for part in proof["parts"]:
            some = [(c * terms[t][0], terms[t][1]) for t in part["terms"]]
            M = self.bound(some, part["proof"], cell, bends, strictly)
            L = [[x + y for x, y in zip(*rows, strict=True)] for rows in zip(L, M, strict=True)]
        return L

    def compose(self, sign, i, proof, strictly):
        rule, (op, args, data) = proof["rule"], self.rows[i]
        if rule == "compose":
            r = data[0] if op == "mono" else ONE
            need(len(args) == 1 and (op in ("exp", "ramp") or self.positive(args[0])), rule)
            need({"exp": 1, "ramp": 1, "log": -1}.get(op, r * (r - 1)) * sign > 0, rule)
            sign = sign if r > 0 else -sign
        elif rule != "affine":
            need(rule in ("max", "lse") and sign > 0, rule)
            forms = [self.forms[j] for j in args if self.forms[j] and op == "lse" and strictly]
            self.strict += [[x - y for x, y in zip(f, forms[0], strict=True)] for f in forms]
        need(rule in ("compose", op), rule)
        for j, part in zip(args, proof.get("parts", ()), strict=True):
            some, inner = [(fmpq(sign), j)], strictly and op not in ("max", "ramp")
            need(at_least(self.bound(some, part, self.corners, repeat(0), inner), 0), part["rule"])

    def cover(self, sign, evidence, cell, tree):
        if "halves" in tree:
            i, j = tree["split"]
            middle = {k: (cell[i].get(k, ZERO) + cell[j].get(k, ZERO)) / 2 for k in range(self.K)}
            for half, n in zip(tree["halves"], (i, j), strict=True):
                self.cover(sign, evidence, [*cell[:n], middle, *cell[n + 1 :]], half)
            return
        bends, chosen = tree.get("bends"), [(fmpq(sign), len(self.rows) - 1)]
        plain = sign > 0 and cell is self.corners and not bends
        L = self.bound(chosen, evidence["proof"], cell, iter(bends or repeat(0)), plain)
        need(at_least(L, exact(evidence["bound"])), "the bound of the curvature")


def verify(file):
    ctx.prec, ctx.cap, falls, flat, bounds = 192, 3, False, False, {}
    text = json.dumps({k: v for k, v in file.items() if k != "digest"}, sort_keys=True)
    need(hashlib.sha256(text.encode()).hexdigest() == file["digest"], "the digest")
    F = Expression(file["K"], file["nodes"])
    for name, sign in (("m_tangent", 1), ("M_tangent", -1)):
        if (evidence := file["evidence"][name]) is not None:
            F.cover(sign, evidence, F.corners, evidence["cover"])
            bounds[name] = sign * exact(evidence["bound"])
        need(str(bounds.get(name)) == str(file[name]), f"the bound {name}")
    if file["segment"] is not None:
        p, q = ({k: exact(x) for k, x in enumerate(point)} for point in file["segment"])
        inside = all(min(x.values()) > 0 and sum(x.values()) == 1 and len(x) == F.K for x in (p, q))
        need(inside and p != q, "two points inside the simplex")
        d, root = {k: q[k] - p[k] for k in p}, len(F.rows) - 1
        start, end = (F.series(root, [x], d, {}) for x in (p, q))
        falls = end[0] - start[0] - start[1] < 0
        flat = F.series(root, [p, q], d, {})[2] == 0
    m = bounds.get("m_tangent", -ONE)
    strict = m > 0 or (m == 0 and fmpq_mat([[1] * F.K, *F.strict]).rank() == F.K)
    convex = "proved" if m >= 0 else "disproved" if falls else "unknown"
    strictly = "proved" if strict else "disproved" if falls or flat else "unknown"
    need([file["convex"], file["strictly_convex"]] == [convex, strictly], "the verdicts")
    return f"convex {convex}, strictly {strictly}, m ≥ {file['m_tangent']}, M ≤ {file['M_tangent']}"


if __name__ == "__main__":
    code = 2
    try:
        document = json.loads(Path(*sys.argv[1:]).read_text("utf-8"))
        need(document["format"] == "pgeom certificate 1", "not a certificate")
        code = 1
        print("verified:", verify(document))
    except Exception as error:
        print("refused:" if code == 1 else "bad input:", error)
        sys.exit(code)
