"""Models: from inputs to logits, as functions of one parameter vector."""
