"""Models: from inputs to logits, as functions of one parameter vector.

May import `pgeom.types` and `pgeom.messages`, and nothing that trains. Read `model` first (what the
trainer asks of one, and networks of dense layers), then `cnn`, `flax_module` (a user's own) and
`architectures` (which makes any of them, from a name or a module, for examples of some shape).
"""
