"""Random input to every loss, generator, metric and command line.

    python -m tests.fuzz --examples 20000

What must hold of each is written once, in `losses`, `scores`, `evaluation` and `commands`; the
ordinary tests try a few examples of each, the command as many as it is asked for.
"""
