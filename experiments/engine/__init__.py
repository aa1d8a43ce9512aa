"""The machinery of the experiments: from a study to its records."""
