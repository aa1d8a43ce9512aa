"""Tables, figures and one page: they read records and never train.

It may import the library and what reads studies and their records in `experiments.engine`, and no
command. Read `metrics` (what losses are compared by) and `contrasts` (paired comparisons) first,
then what they say: `decisions`, `claims` and `controls`. `records` gathers what a page shows,
`items` makes its tables (`tables`, `summary`, `published`, `regrets`, `links`, `theory`) and its
figures (`figures`, `style`) by name, and `page` writes them in the order of `outline.toml`.
"""
