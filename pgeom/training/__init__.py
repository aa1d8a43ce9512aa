"""Training many runs in one compiled program.

May import models, losses, `paper`, metrics and mathematics; neither data nor studies. Read
`settings` first, then `fit` (one loss on arrays), `trainer` (cells on devices, and the loop over
epochs), `program` (one epoch, compiled) and `early_stopping`.
"""
