"""Every table and figure of the paper beside what was published: `python -m experiments.report`."""
