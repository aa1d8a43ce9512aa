"""Seventeen losses on a 30:1 long tail: `python -m experiments.longtail`.

Every loss is trained twice, with the protocol's early stopping and without any, because the
published tie of cross-entropy and the candidates near .16 is an effect of stopping: their
validation NLL is best in the second or third epoch.
"""
