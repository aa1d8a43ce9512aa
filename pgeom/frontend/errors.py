"""The one error that a command shows as a line."""


class UsageError(ValueError):
    """A mistake in the user's input; its message is the one line that the user sees."""
