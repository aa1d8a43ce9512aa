"""Verify a certificate of `pgeom.certify` without JAX: `python -m proofs_numeric.checker FILE`."""

import hashlib
import json
import sys
from functools import cache
from itertools import combinations_with_replacement as couples, product, repeat
from math import prod
from pathlib import Path

from flint import arb, arb_series, ctx, fmpq, fmpq_mat

ZERO, HALF, ONE, INF, NAN = fmpq(0), fmpq(1, 2), fmpq(1), arb.pos_inf(), arb_series([arb.nan()] * 4)
CLAIMS = {"m_tangent": 1, "M_tangent": -1, "least": 1, "largest": -1}  # from below, from above
BENT = {"exp": 1, "ramp": 1, "max": 1, "lse": 1, "log": -1}  # increasing functions: the sign of f″
UNARY = ("exp", "log", "sin", "cos", "tan", "atan", "erf", "xlogx")
OTHERS = {  # functions of Taylor series xs and constants c
    "lin": lambda xs, c: c[0] + sum(x * y for x, y in zip(xs, c[1:], strict=True)),
    "quadratic": lambda xs, c: sum(x * y * q for (x, y), q in zip(product(xs, xs), c, strict=True)),
    "mono": lambda xs, c: prod(
        x ** int(r) if r.q == 1 else (x.log() * r).exp() for x, r in zip(xs, c, strict=True)
    ),
    "lse": lambda xs, c: (
        (top := max(xs, key=lambda x: x[0].mid()))  # so that nothing large cancels
        + sum(((x - top).exp() * y for x, y in zip(xs, c, strict=True)), 0 * top).log()
    ),
    "max": lambda xs, c: [*(x for x in xs if all(x is y or x[0] > y[0] for y in xs)), NAN][0],
    "ramp": lambda x, c: OTHERS["mono"](x, c) if x[0][0] > 0 else 0 * x[0] if x[0][0] < 0 else NAN,
    "xlogx": lambda xs, c: xs[0] * xs[0].log(),
}


def need(condition, what):
    if not condition:
        raise ArithmeticError(what)


def exact(number):
    need({*str(number)} <= {*"-/0123456789"} and len(str(number)) < 8000, "a numeral")
    return fmpq(str(number))


def dot(form, point):
    return sum((form[k] * x for k, x in point.items()), ZERO)


def at_least(L, m):
    *rest, n = range(len(L))  # dᵀLd ≥ m‖d‖² for all d with Σd = 0, in the basis e_i − e_K
    cut = [[L[i][j] - L[i][n] - L[n][j] + L[n][n] - m * (1 + (i == j)) for j in rest] for i in rest]
    for k, top in enumerate(rows := [[*map(arb, row)] if n > 11 else row for row in cut]):
        if not (top[k] > 0 or all(x == 0 for x in top[k:])):
            return False  # eliminating; a pivot may be zero if its row is
        for row in rows[k + 1 :] if top[k] > 0 else ():
            row[k:] = [a - row[k] / top[k] * b for a, b in zip(row[k:], top[k:], strict=True)]
    return True


class Expression:  # forms: values of affine rows, lines: the w of all w·p, strict: v with v·d ≠ 0
    def __init__(self, K, rows):  # [operation, earlier rows, constants], the last of which is F
        need(type(K) is int and 2 <= K <= 1000, "the number of classes")
        self.K, self.strict, self.steps, self.positive = K, [], 0, cache(self.positive)
        self.rows = [(op, args, [exact(x) for x in data]) for op, args, data in rows]
        self.forms, self.lines, self.corners = [], [], [{k: ONE} for k in range(K)]
        inside = [{k: fmpq(3 * k + 5, sum(range(5, 3 * K + 5, 3))) for k in range(K)}], {}, {}
        for i, (op, args, data) in enumerate(self.rows):
            ok = {"affine": (len(data), args) == (K, []), "lin": all(data[1:])}
            ok |= {"quadratic": all(self.forms[j] for j in args)}
            ok |= {"mono": all(0 < abs(x) <= 10**6 for x in data), "lse": all(x > 0 for x in data)}
            ok |= {"ramp": len(args) == len(data) == 1 and fmpq(9, 8) <= data[0], "max": not data}
            need(ok.get(op, op in UNARY and (len(args), data) == (1, [])), f"a row {op}")
            need(all(type(j) is int and 0 <= j < i for j in args), "earlier rows")
            self.forms.append(data if op == "affine" else None)
            self.lines.append({w for j in args for w in self.lines[j]} | {op} & {"max", "ramp"})
            if op == "affine" and min(data) < max(data):
                w = tuple((x - min(data)) / (max(data) - min(data)) for x in data)
                self.lines[i] = {min(w, tuple(1 - x for x in w))}
            need(self.jet(i, *inside)[0].is_finite(), f"a value of {op}")

    def jet(self, i, points, d, known):
        op, args, data = self.rows[i]  # value, slope, half the second derivative, … on a hull
        self.steps += (i not in known) * (1 + len(data) * (op != "affine"))
        need(self.steps < 500_000, "too many steps")  # every file is judged in seconds
        if i not in known and op == "affine":
            ends = [dot(data, p) for p in points]
            known[i] = arb_series([arb(min(ends)).union(arb(max(ends))), arb(dot(data, d))])
        elif i not in known:
            xs = [self.jet(j, points, d, known) for j in args]
            known[i] = OTHERS[op](xs, data) if op in OTHERS else getattr(xs[0], op)()
        return known[i]

    def positive(self, i, concave=False):
        op, args, data = self.rows[i]  # whether it is positive wherever all p_k are
        if op in ("mono", "affine") or (op == "lin" and min(data) >= 0 < min(data[1:])):
            return all(map(self.positive, args)) and (op != "affine" or min(data) >= 0 < max(data))
        hulls = [[p] for p in self.corners] if concave else [self.corners]
        able = op == "exp" or (op == "max" and any(map(self.positive, args)))
        return able or all(self.jet(i, hull, {}, {})[0] > 0 for hull in hulls)

    def bend(self, chosen, w, low, high):  # the least φ″ for Σ c·x = φ(w·p), low ≤ w·p ≤ high
        a, b, half, total, *sums = w.index(0), w.index(1), (high - low) / 2, *[arb(0)] * 5
        points, d = [{a: 1 - u, b: u} for u in (low, low + half, high)], {a: -ONE, b: ONE}
        for c, i in chosen:
            (op, args, data), whole = self.rows[i], self.jet(i, points, d, {})
            bends = [2 * c * self.jet(i, [p], d, {})[2] for p in points]
            sums = [*map(arb.__add__, sums, [*bends, c * whole[3]])]  # φ″ at the points, and φ‴/6
            form, r = self.forms[args[0]], data[0] if data else HALF + (op == "xlogx")
            ramp = op == "ramp" and (r >= 2 or c > 0)
            power = op in ("mono", "log", "xlogx") and all(map(self.positive, args))
            known = form and (ramp or power) and not any(self.lines[j] for j in args[1:])
            limit = arb(0) if ramp or r > 2 else INF * c * r * (r - 1)  # where the form is 0
            ends = [limit if known and x.is_nan() else x.lower() for x in bends]
            centre = max(2 * c * whole[2], bends[1] - abs(6 * c * whole[3]) * half, key=arb.lower)
            total += min(ends) if known or whole[3] >= 0 or whole[3] <= 0 else centre.lower()
        return min(sums[0].lower(), sums[2].lower()) if sums[3] >= 0 or sums[3] <= 0 else total

    def above(self, chosen, w, parts, bend):
        while parts:
            low, high = parts.pop()
            if not self.bend(chosen, w, low, high) >= bend:
                need(high - low > fmpq(1, 2**60), "the bound of a ridge")
                parts += [(low, (low + high) / 2), ((low + high) / 2, high)]

    def bound(self, chosen, proof, cell, bends, strictly):  # L with H ⪰ L on tangents, H of Σ c·x
        rule, (c, i), L = proof["rule"], chosen[0], [[ZERO] * self.K for _ in range(self.K)]
        lines, (op, args, data) = {w for _, j in chosen for w in self.lines[j]}, self.rows[i]
        if rule == "ridge":
            (w,), bend, u = lines - {"max", "ramp"}, exact(next(bends)), fmpq(2, 7)
            low, *_, high = sorted(dot(w, p) for p in cell)
            self.above(chosen, w, [(low, high)], bend)
            if strictly and lines == {w} and self.bend(chosen, w, u, u) >= fmpq(1, 10**9):
                self.strict += lines  # an analytic φ″ ≥ 0 has isolated zeros
            return [[bend * x * y for y in w] if x else L[0] for x in w]
        need(len(chosen) == 1, rule)
        if rule == op == "quadratic":  # of affine x
            V = fmpq_mat([self.forms[j] for j in args])
            Q = V.transpose() * fmpq_mat(len(args), len(args), data) * V
            return (c * (Q + Q.transpose())).tolist()
        if rule == "length":  # n = √(pᵀQp): H is between Q/(sn³) and √s·Q, s = 1ᵀQ⁻¹1
            Q = self.bound([(HALF, args[0])], {"rule": "quadratic"}, cell, (), False)
            s = sum(fmpq_mat(Q).solve(fmpq_mat([[1]] * self.K)).entries(), ZERO)
            need(data == [HALF] and op == "mono" and s > 0 and at_least(Q, 0), rule)  # so Q ≻ 0
            n = max(self.jet(args[0], [p], {}, {})[0].upper() for p in cell).sqrt()
            return [[x * (c / (s * n**3) if c > 0 else c * arb(s).sqrt()) for x in r] for r in Q]
        for j, k in couples(range(self.K - 1), 2) if rule == "hessian" else ():
            d, e = {j: ONE, k: ONE + (j == k), self.K - 1: -2 * ONE}, {j: ONE, k: fmpq(j == k) - 1}
            L[j][k] = L[k][j] = c * (self.jet(i, cell, d, {})[2] - self.jet(i, cell, e, {})[2]) / 2
        if rule != "sum":
            return L if rule == "hessian" else self.compose(c, i, proof, strictly) or L
        terms = [(c * x, j) for x, j in zip(data[1:], args, strict=True)] if op == "lin" else chosen
        taken = sorted(t for part in proof["parts"] for t in part["terms"])
        need(taken == [t for t, (_, j) in enumerate(terms) if not self.forms[j]], "all terms")
        for part in proof["parts"]:
            M = self.bound([terms[t] for t in part["terms"]], part["proof"], cell, bends, strictly)
            L = [[x + y for x, y in zip(*rows, strict=True)] for rows in zip(L, M, strict=True)]
        return L

    def compose(self, c, i, proof, strictly):  # f(y, …), f convex, y convex where f increases
        rule, (op, args, data), outer, s, needed = proof["rule"], self.rows[i], [i], ONE, []
        if rule == "affine":
            return need(self.forms[i] or not self.lines[i], rule)
        if rule == "mean":  # (c + Σ c·y)^s: the l^q mean of the y^s for q = 1/s
            (s,), (inner, outer, scales) = data, self.rows[args[0]]
            need(inner == "lin" and min(scales) >= 0 and (0 < s < 1) == (c > 0), rule)
        bent = BENT.get(op, 0) * c > 0 and (c > 0 or self.positive(args[0], True))
        need({"compose": bent or op == "mono", "mean": op == "mono"}.get(rule), rule)
        for y in outer if op == "mono" else ():  # c·Π x^{rs} and the curvature that it needs of x
            pairs = [*zip(*self.rows[y][1:], strict=True)] if self.rows[y][0] == op else [(y, ONE)]
            free = [r * s for j, r in pairs if self.lines[j]]  # constants do not count
            up, total = sum(r > 0 for r in free), sum(free)
            need(up in (0, total >= 1) if c > 0 else up == len(free) and total <= 1, op)
            for j, r in pairs:
                needed.append((c if r * s > 0 else -c, j))
                even = self.forms[j] and c > 0 < r and (r / 2).q == 1
                plain = s == 1 and free == [1] and self.lines[j]
                need(even or plain or self.positive(j, c * r * s < 0), "the domain of a power")
        needed = needed or [(c, j) for j in args]
        forms = [self.forms[j] for _, j in needed if self.forms[j]]
        if strictly and 0 < s != 1 and len(forms) == len(needed) == len(outer):  # by Minkowski
            self.strict += forms if fmpq_mat(forms).rank() == self.K else []
        self.strict += strictly * [[*map(fmpq.__sub__, f, forms[0])] for f in forms if op == "lse"]
        alone = op not in ("max", "ramp") and sum(bool(self.lines[j]) for _, j in needed) == 1
        for pair, part in zip(needed, proof["parts"], strict=True):
            inner = strictly and (op == "lse" or alone)
            need(at_least(L := self.bound([pair], part, self.corners, repeat(0), inner), 0), rule)
            if inner and at_least(L, fmpq(1, 10**50)):
                self.strict += [[fmpq(j == k) for j in range(self.K)] for k in range(self.K)]

    def cover(self, name, evidence, cell, tree, m):
        if "halves" in tree:
            i, j = tree["split"]
            middle = {k: (cell[i].get(k, ZERO) + cell[j].get(k, ZERO)) / 2 for k in range(self.K)}
            for half, n in zip(tree["halves"], (i, j), strict=True):
                self.cover(name, evidence, [*cell[:n], middle, *cell[n + 1 :]], half, m)
            return
        sign, i, bends = fmpq(CLAIMS[name]), len(self.rows) - 1, tree.get("bends")
        if "tangent" in name:
            plain = sign > 0 and cell is self.corners and not bends
            L = self.bound([(sign, i)], evidence["proof"], cell, iter(bends or repeat(0)), plain)
            return need(at_least(L, exact(evidence["bound"])), "the bound of the curvature")
        p = self.point(tree["at"]) if m >= 0 else cell[0]
        for v in cell:  # a convex F is below its values at the vertices, and above its tangents
            d = {k: v.get(k, ZERO) - p.get(k, ZERO) for k in range(self.K)}
            x = self.jet(i, [v if m >= 0 > sign else p], d, {})
            slope = 0 if m >= 0 > sign else x[1] if m >= 0 else self.jet(i, cell, d, {})[1]
            need(sign * (x[0] + slope) >= exact(evidence["bound"]), "the bound of a value")

    def point(self, numbers):
        p = {k: exact(x) for k, x in enumerate(numbers)}
        need(len(p) == self.K and sum(p.values()) == 1 and min(p.values()) >= 0, "a point")
        return p


def verify(file):
    ctx.prec, ctx.cap, falls, flat, bounds = 512, 4, False, False, {}
    text = json.dumps({k: v for k, v in file.items() if k != "digest"}, sort_keys=True)
    need(hashlib.sha256(text.encode()).hexdigest() == file["digest"], "the digest")
    F, root = Expression(file["K"], file["nodes"]), len(file["nodes"]) - 1
    for name, sign in CLAIMS.items():
        if (evidence := file["evidence"].get(name)) is not None:
            F.cover(name, evidence, F.corners, evidence["cover"], bounds.get("m_tangent", -1))
            bounds[name] = sign * exact(evidence["bound"])
        need(str(bounds.get(name)) == str(file.get(name)), f"the bound {name}")
        if (at := file["attained"].get(name)) is not None:
            x = F.jet(root, [F.point(at["p"])], d := dict(enumerate(map(exact, at["d"]))), {})
            found = 2 * x[2] / sum(y * y for y in d.values()) if "tangent" in name else x[0]
            need(sum(d.values()) == 0 <= sign * (exact(at["value"]) - found), f"attained {name}")
    if file["segment"] is not None:
        p, q = map(F.point, file["segment"])
        x = F.jet(root, [p], d := {k: q[k] - x for k, x in p.items()}, {})
        falls = min(*p.values(), *q.values()) > 0 > F.jet(root, [q], d, {})[0] - x[0] - x[1]
        flat = p != q and F.jet(root, [p, q], d, {})[2] == 0  # on a face, too
    m = bounds.get("m_tangent", -ONE)
    convex = "proved" if m >= 0 else "disproved" if falls else "unknown"
    strict = m > 0 or (m == 0 and fmpq_mat([[1] * F.K, *F.strict]).rank() == F.K)
    strictly = "proved" if strict else "disproved" if falls or flat else "unknown"
    need([file["convex"], file["strictly_convex"]] == [convex, strictly], "the verdicts")
    return f"convex {convex}, strictly {strictly}, bounds {bounds}"


if __name__ == "__main__":  # exits with 0: verified, 1: refused, 2: bad input
    code = 2
    try:
        document = json.loads(Path(*sys.argv[1:]).read_text("utf-8"))
        need(document["format"] == "pgeom certificate 3", "not a certificate")
        code = 1
        print("verified:", verify(document))
    except Exception as error:
        print("refused:" if code == 1 else "bad input:", error)
        sys.exit(code)
