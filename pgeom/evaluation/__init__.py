"""How good predictions are, and how sure one can be of it.

May import the mathematics, and nothing that trains. Read `metrics` first, then `calibration` (with
`isotonic`), `decomposition`, `significance`, `statistics` (losses compared over seeds), `attacks`.
"""
