"""The paper's experiments: one thin module a command."""
