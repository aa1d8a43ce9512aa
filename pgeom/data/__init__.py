"""Classification problems as plain NumPy arrays: sources, splits, label noise and long tails."""
