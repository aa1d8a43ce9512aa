"""Models: from inputs to logits, as functions of one parameter vector.

May import losses and mathematics, and nothing that trains. Read `model` first, then `architectures`
(by name), `cnn` and `flax_module` (a user's own).
"""
