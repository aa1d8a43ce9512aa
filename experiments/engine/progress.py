"""The bar that shows how far a job is."""

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


def make_bar(console: Console) -> Progress:
    """A bar on a terminal, and nothing elsewhere: a log has no use for one."""
    counts = TextColumn("{task.fields[finished]} of {task.fields[runs]} runs")
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), counts)
    times, disable = (TimeElapsedColumn(), TimeRemainingColumn()), not console.is_terminal
    return Progress(*columns, *times, console=console, disable=disable)
