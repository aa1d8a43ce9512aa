"""Training many runs in one compiled program.

May import models, losses, metrics and mathematics; neither data nor studies. Read `settings` first,
then `fit` (one loss on arrays), `program` (one epoch, compiled), `early_stopping` and `trainer`.
"""
