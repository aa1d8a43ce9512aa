"""Tables, figures and one page: they read records and never train.

It may import the library, `experiments.engine` and `experiments.shell`. Read it from the records to
the page: `metrics` (what losses are compared by), `contrasts` (paired comparisons), `claims`,
`decisions` and `controls` (what they say), `tables` and `figures` (how it is shown), and `page`.
"""
