"""Numerical diagnostics of every claim of the paper: `python -m proofs_numeric`."""
