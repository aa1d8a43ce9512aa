"""The evaluation of predictions: metrics, temperature scaling, perturbations and paired tests."""
