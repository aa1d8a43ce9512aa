"""Verify a certificate of `pgeom.certify` without JAX: `python -m proofs_numeric.checker FILE`."""

import hashlib
import json
import sys
from itertools import product, repeat
from pathlib import Path

from flint import arb, arb_series, ctx, fmpq, fmpq_mat

STEPS, ZERO, ONE, INF, NAN = 3_000, fmpq(0), fmpq(1), arb.pos_inf(), arb.nan()
LOW, TOP = {"mono": -(10**6), "ramp": fmpq(9, 8), "lse": 0}, {"mono": 10**6, "ramp": 10**6}
UNARY = ("exp", "log", "sin", "cos", "tan", "atan", "erf", "xlogx", "softplus")
BENT = {"exp": 1, "ramp": 1, "max": 1, "lse": 1, "softplus": 1, "log": -1}  # increasing: sign of f″
CLAIMS = {"m_tangent": 1, "M_tangent": -1, "least": 1, "largest": -1}  # from below, from above


def need(condition, what):
    if not condition:
        raise ArithmeticError(what)


def exact(number):
    need({*str(number)} <= {*"-/0123456789"} and len(str(number)) < 8000, "a numeral")
    return fmpq(str(number))


def dot(form, point):
    return sum((form[k] * x for k, x in point.items()), ZERO)


def at_least(L, m):
    *both, n = range(len(L))  # dᵀLd ≥ m‖d‖² for all d with Σd = 0, in the basis e_i − e_K
    cut = [[L[i][j] - L[i][n] - L[n][j] + L[n][n] - m * (1 + (i == j)) for j in both] for i in both]
    rows = [[*map(arb, row)] if n > 11 else row for row in cut]
    for k, top in enumerate(rows):  # by elimination; a pivot may be zero if its row is
        if not (top[k] > 0 or all(x == 0 for x in top[k:])):
            return False
        for row in rows[k + 1 :] if top[k] > 0 else ():
            factor = row[k] / top[k]
            row[k:] = [a - factor * b for a, b in zip(row[k:], top[k:], strict=True)]
    return True


class Expression:
    def __init__(self, K, rows):  # [operation, arguments, constants], the last one of which is F
        need(type(K) is int and K >= 2, "the number of classes")
        self.K, self.corners, self.rows, self.forms = K, [{k: ONE} for k in range(K)], [], []
        self.lines, self.strict = [], []  # what w·p a row depends on; F strictly convex if v·d ≠ 0
        for op, args, data in rows:
            need(all(type(j) is int and 0 <= j < len(self.rows) for j in args), "earlier rows")
            data, n, ok = [exact(x) for x in data], len(args), op in ("affine", "quadratic")
            sizes = {"affine": (0, K), "lin": (n, n + 1), "quadratic": (n, n * n), "max": (n, 0)}
            sizes |= {"mono": (n, n), "lse": (n, n), "ramp": (1, 1)} | dict.fromkeys(UNARY, (1, 0))
            ok = ok or all(x and LOW.get(op, x) <= x <= TOP.get(op, x) for x in data[op == "lin" :])
            need(ok and (n, len(data)) == sizes.get(op) and (n or op == "affine"), f"a row {op}")
            lines = {w for j in args for w in self.lines[j]} | ({op} & {"max", "ramp"})
            if op == "affine" and min(data) < max(data):
                w = tuple((x - min(data)) / (max(data) - min(data)) for x in data)
                lines = {min(w, tuple(1 - x for x in w))}
            self.rows.append((op, args, data))
            self.forms.append(data if op == "affine" else None)
            self.lines.append(lines)

    def series(self, i, points, d, known):
        if i in known:  # value, slope, half the second derivative, … along d around a hull
            return known[i]
        op, args, data = self.rows[i]
        xs = [self.series(j, points, d, known) for j in args]
        if op in ("max", "ramp"):
            xs += [arb_series([0])] * (op == "ramp")
            able = [x for x in xs if not any(x[0] < y[0] for y in xs)]
            xs = able if len(able) == 1 else [arb_series([NAN] * 3)]
            data = data if data and xs[0].length() else [ONE]
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
        elif op in ("lse", "softplus"):
            start = arb_series([int(op == "softplus")])
            value = sum((x.exp() * c for c, x in zip(data or [1], xs, strict=True)), start).log()
        else:
            value = xs[0] * xs[0].log() if op == "xlogx" else getattr(xs[0], op)()
        return known.setdefault(i, value)

    def positive(self, i, concave=False):
        op, args, data = self.rows[i]  # whether it is positive wherever all p_k are
        if op in ("mono", "affine") or (op == "lin" and min(data) >= 0 and min(data[1:]) > 0):
            return all(map(self.positive, args)) and (op != "affine" or min(data) >= 0 < max(data))
        hulls = [[p] for p in self.corners] if concave else [self.corners]
        return op == "exp" or all(self.series(i, hull, {}, {})[0] > 0 for hull in hulls)

    def ridge(self, chosen, w, bend, cell):  # bend·wwᵀ if φ″ ≥ bend for the terms as φ(w·p)
        a, b, values, steps = w.index(0), w.index(1), [dot(w, p) for p in cell], 0
        todo, d = [(min(values), max(values))], {a: -ONE, b: ONE}
        while todo:
            (low, high), steps, total = todo.pop(), steps + 1, arb(0)
            points = [{a: 1 - u, b: u} for u in (low, high)]
            for c, i in chosen:  # f″ of powers and logarithms, and of others beside 0, is monotone
                op, args, data = self.rows[i]
                form, r = self.forms[args[0]], data[0] if data else fmpq(1, 2) + (op == "xlogx")
                soft = (
                    op == "softplus" and form and dot(form, points[0]) * dot(form, points[1]) >= 0
                )
                power = op in ("mono", "log", "xlogx") and len(args) == 1 and self.positive(args[0])
                known = form and (soft or power or (op == "ramp" and r >= 2 - (c > 0)))
                hulls = [[p] for p in points] if known else [points]
                bends = [2 * c * self.series(i, hull, d, {})[2] for hull in hulls]
                zero = arb(0) if op == "ramp" or r > 2 else INF * c * r * (r - 1)
                total += min(zero if x.is_nan() and known else x.lower() for x in bends)
            if not total >= bend:
                need(steps < STEPS, "the bound of a ridge")
                todo += [(low, (low + high) / 2), ((low + high) / 2, high)]
        return [[bend * x * y for y in w] for x in w]

    def bound(self, chosen, proof, cell, bends, strictly):  # L with H ⪰ L on tangents, H of Σ c·x
        rule, (c, i), L = proof["rule"], chosen[0], [[ZERO] * self.K for _ in range(self.K)]
        lines, (op, args, data) = {w for _, j in chosen for w in self.lines[j]}, self.rows[i]
        w = max((x for x in lines if type(x) is tuple), default=())
        if strictly and lines == {w} and rule not in ("sum", "quadratic", "hessian"):
            p, d = {w.index(0): fmpq(5, 7), w.index(1): fmpq(2, 7)}, {w.index(0): -1, w.index(1): 1}
            bend = sum((c * self.series(i, [p], d, {})[2] for c, i in chosen), arb(0))
            self.strict += [w] if bend > 0 else []  # an analytic φ″ ≥ 0 has isolated zeros
        if rule == "ridge" and lines <= {w, "max", "ramp"}:
            return self.ridge(chosen, w, exact(next(bends)), cell)
        need(len(chosen) == 1, rule)
        if rule == op == "quadratic":  # of affine x
            V = fmpq_mat([self.forms[j] for j in args])
            Q = V.transpose() * fmpq_mat(len(args), len(args), data) * V
            return (c * (Q + Q.transpose())).tolist()
        for j, k in product(range(self.K - 1), repeat=2) if rule == "hessian" else ():
            d, e = {j: ONE, k: ONE + (j == k), self.K - 1: -2 * ONE}, {j: ONE, k: fmpq(j == k) - 1}
            L[j][k] = c * (self.series(i, cell, d, {})[2] - self.series(i, cell, e, {})[2]) / 2
        if rule != "sum":
            return L if rule == "hessian" else self.compose(c, i, proof, strictly) or L
        terms = [(c * x, j) for x, j in zip(data[1:], args, strict=True)] if op == "lin" else chosen
        taken = sorted(t for part in proof["parts"] for t in part["terms"])
        need(taken == [t for t, (_, j) in enumerate(terms) if not self.forms[j]], "all terms")
        for part in proof["parts"]:
            M = self.bound([terms[t] for t in part["terms"]], part["proof"], cell, bends, strictly)
            L = [[x + y for x, y in zip(*rows, strict=True)] for rows in zip(L, M, strict=True)]
        return L

    def compose(self, c, i, proof, strictly):
        rule, (op, args, data), s, ys, signs, scales = proof["rule"], self.rows[i], ONE, [i], [], []
        if rule == "affine":
            return need(self.forms[i] or not self.lines[i], rule)
        if rule == "mean":  # (c + Σ c·y)^s: the l^q mean of the y^s for q = 1/s
            (s,), (inner, ys, scales) = data, self.rows[args[0]]
            need(inner == "lin" and min(scales) >= 0 and (0 < s < 1) == (c > 0), rule)
        bent = BENT.get(op, 0) * c > 0 and (c > 0 or self.positive(args[0], True))
        need({"compose": bent or op == "mono", "mean": op == "mono"}.get(rule), rule)
        if op == "mono":
            rows = [self.rows[j] if self.rows[j][0] == op else (op, [j], [ONE]) for j in ys]
            args = [j for _, js, _ in rows for j in js]
            for _, js, powers in rows:  # a product of x^{rs}; constants among the x do not count
                free = [r * s for j, r in zip(js, powers, strict=True) if self.lines[j]]
                up, total = sum(r > 0 for r in free), sum(free)
                need(up in (0, total >= 1) if c > 0 else up == len(free) and total <= 1, op)
                for j, r in zip(js, powers, strict=True):
                    signs.append(c if r * s > 0 else -c)
                    even = self.forms[j] and c > 0 < r and (r / 2).q == 1
                    plain = s == 1 and free == [1] and self.lines[j]
                    need(even or plain or self.positive(j, signs[-1] < 0), "the domain of a power")
        forms = [self.forms[j] for j in args if self.forms[j]]
        gaps = [[x - y for x, y in zip(f, forms[0], strict=True)] for f in forms if op == "lse"]
        whole = s > 0 and len(forms) == len(args) == len(ys) and fmpq_mat(forms).rank() == self.K
        self.strict += (gaps or forms if gaps or whole else []) if strictly else []
        inner = op == "lse" or (rule != "mean" and len(args) == 1 and op != "ramp")
        for j, x, part in zip(args, signs or [c] * len(args), proof["parts"], strict=True):
            L = self.bound([(x, j)], part, self.corners, repeat(0), strictly and inner)
            need(at_least(L, 0), part["rule"])
        if whole and s == fmpq(1, 2) and all(self.rows[j][2] == [2] for j in ys):  # c√(c₀ + pᵀQp)
            D = fmpq_mat([[x * y for y in f] for x, f in zip(scales[1:], forms, strict=True)])
            Q = fmpq_mat(forms).transpose() * D  # H ⪰ cQ/(1ᵀQ⁻¹1·(pᵀQp)^{3/2}) on tangents
            total = sum(Q.solve(fmpq_mat([[1]] * self.K)).entries(), ZERO)
            size = arb(max(Q[k, k] for k in range(self.K)) + scales[0])
            return [[c / (total * size * size.sqrt()) * x for x in row] for row in Q.tolist()]

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
            x = self.series(i, [v if m >= 0 > sign else p], d, {})
            slope = 0 if m >= 0 > sign else x[1] if m >= 0 else self.series(i, cell, d, {})[1]
            need(sign * (x[0] + slope) >= exact(evidence["bound"]), "the bound of a value")

    def point(self, numbers):
        p = {k: exact(x) for k, x in enumerate(numbers)}
        need(len(p) == self.K and sum(p.values()) == 1 and min(p.values()) >= 0, "a point")
        return p


def verify(file):
    ctx.prec, ctx.cap, falls, flat, m, bounds = 512, 3, False, False, -ONE, {}
    text = json.dumps({k: v for k, v in file.items() if k != "digest"}, sort_keys=True)
    need(hashlib.sha256(text.encode()).hexdigest() == file["digest"], "the digest")
    F, root = Expression(file["K"], file["nodes"]), len(file["nodes"]) - 1
    for name, sign in CLAIMS.items():
        if (evidence := file["evidence"].get(name)) is not None:
            F.cover(name, evidence, F.corners, evidence["cover"], m)
            bounds[name] = sign * exact(evidence["bound"])
            m = bounds.get("m_tangent", m)
        need(str(bounds.get(name)) == str(file.get(name)), f"the bound {name}")
        if (at := file["attained"].get(name)) is not None:
            x = F.series(root, [F.point(at["p"])], d := dict(enumerate(map(exact, at["d"]))), {})
            found = 2 * x[2] / sum(y * y for y in d.values()) if "tangent" in name else x[0]
            need(sum(d.values()) == 0 <= sign * (exact(at["value"]) - found), f"attained {name}")
    if file["segment"] is not None:
        p, q = map(F.point, file["segment"])
        need(min(*p.values(), *q.values()) > 0 and p != q, "two points inside the simplex")
        d = {k: q[k] - x for k, x in p.items()}
        start, end = (F.series(root, [x], d, {}) for x in (p, q))
        falls, flat = end[0] - start[0] - start[1] < 0, F.series(root, [p, q], d, {})[2] == 0
    strict = m > 0 or (m == 0 and fmpq_mat([[1] * F.K, *F.strict]).rank() == F.K)
    convex = "proved" if m >= 0 else "disproved" if falls else "unknown"
    strictly = "proved" if strict else "disproved" if falls or flat else "unknown"
    need([file["convex"], file["strictly_convex"]] == [convex, strictly], "the verdicts")
    return f"convex {convex}, strictly {strictly}, bounds {bounds}"


if __name__ == "__main__":  # exits with 0: verified, 1: refused, 2: bad input
    code = 2
    try:
        document = json.loads(Path(*sys.argv[1:]).read_text("utf-8"))
        need(document["format"] == "pgeom certificate 2", "not a certificate")
        code = 1
        print("verified:", verify(document))
    except Exception as error:
        print("refused:" if code == 1 else "bad input:", error)
        sys.exit(code)
