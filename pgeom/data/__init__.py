"""Classification problems as plain NumPy arrays: datasets, splits, label noise and long tails."""
