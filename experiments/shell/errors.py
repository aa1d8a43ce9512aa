"""The one error that a command shows as a line, and what the library refuses turned into it.

>>> with refusals("--rate: "):
...     raise ValueError("must be positive, got -1")
Traceback (most recent call last):
    ...
experiments.shell.errors.UsageError: --rate: must be positive, got -1
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

NO_ARGUMENTS: Mapping[str, str] = MappingProxyType({})


class UsageError(ValueError):
    """A mistake in the user's input; its message is the one line that the user sees."""


@contextmanager
def refusals(
    before: str = "", arguments: Mapping[str, str] = NO_ARGUMENTS
) -> Generator[None, None, None]:
    """What the library refuses while options become values is a mistake in the input.

    Args:
      before: what the line begins with, such as the option that is wrong.
      arguments: of the library as its messages have them, with the options to type instead.
    """
    try:
        yield
    except UsageError:
        raise
    except (ValueError, TypeError, ImportError) as error:
        message = " ".join(str(error).split()) or type(error).__name__
        for argument, option in arguments.items():
            message = message.replace(argument, option)
        raise UsageError(before + message) from error
