"""The paper's own constructions: CAPM, HPG and APMS.

May import the mathematics and the diagnosis. Read `objectives` first, then `class_structure`
(CAPM's matrix), `margin` (the penalty of APMS) and `displacement` (how far that penalty moves the
target).
"""
