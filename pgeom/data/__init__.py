"""Classification problems as plain NumPy arrays: datasets, splits, label noise and long tails.

May import `pgeom.messages`, and nothing else of the library; it works without JAX. Read `regimes`
first (what noise and long tails do to labels), then `dataset` (the value and its checks), `splits`,
`sources` (datasets by name or path), `files` (a user's tables and arrays), `images` and `mixtures`.
"""
