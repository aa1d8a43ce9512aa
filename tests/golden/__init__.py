"""Values of the public functions, frozen: what a change of structure must not change."""
