"""Classification problems as plain NumPy arrays: datasets, splits, label noise and long tails.

May import the checks, and neither the mathematics nor losses. Read `dataset` first, then `sources`
(where datasets come from), `files` (a user's own), `images`, `mixtures`, `splits` and `regimes`.
"""
