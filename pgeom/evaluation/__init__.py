"""What a set of predictions is worth: metrics, temperature scaling and paired tests."""
