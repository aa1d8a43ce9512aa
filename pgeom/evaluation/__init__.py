"""How good predictions are, and how sure one can be of it.

May import the mathematics, and nothing that trains. Read `metrics` first, then `calibration`,
`significance` (losses compared over seeds), `decomposition` and `attacks`.
"""
