"""Numerical diagnostics of every claim of the paper: `python -m proofs_numeric`.

May import mathematics, losses, data and the shell of the commands. Read `claims` first (a claim as
data, and its verdict), `search` (ascents, branch and bound) and `configurations` (the generators).
Then the statements, beside the paper: `regret` (Lemma 1), `curvature`, `loss_range`, `gradients`
and `hessian_lipschitz` (Propositions 2 and 3), `margin`, `displacement` and `improper` (Theorem 4),
`graph_weights`, `contamination`, `numerics`, and beyond it `canonical_links`. `runner` and `table`
check them and show the verdicts. `user_generator` asks the same of a function of yours; `certified`
asks for proofs, which `checker` verifies alone.
"""

import sys

from pgeom import extras

if sys.argv[:1] == ["-m"]:  # so Python has it while it looks for the module of `python -m`
    # the checker needs neither JAX nor what the commands need
    if "proofs_numeric.checker" in sys.orig_argv:
        extras.exit_without("python -m proofs_numeric.checker", "certify")
    else:
        import experiments  # noqa: F401 - whose commands are ended alike
