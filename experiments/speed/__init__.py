"""How fast the digits job is, against other ways to write it, and how its cost grows."""
