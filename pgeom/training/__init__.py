"""Training many runs in one compiled program."""
