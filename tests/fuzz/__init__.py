"""Random input to every loss, generator, metric and command line.

    python -m pytest tests/fuzz --hypothesis-profile=thorough

What must hold of each is written once, in `losses`, `scores`, `evaluation` and `commands`. The
ordinary tests try a few examples of each, of few shapes; the profile tries thousands, of all.
"""
