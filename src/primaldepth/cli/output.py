"""stdout carries the result, stderr the log and the progress bar (none when it is not a terminal).

All text passes `printable`: names of files and what stands in files can hold sequences that a terminal obeys.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

stderr = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)


def printable(text: str) -> str:
    """Return the text with all that cannot be seen written as Python does, ESC as backslash and x1b."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def fail(message: str) -> None:
    """Print one line of error on stderr."""
    note(f"primaldepth: {' '.join(message.splitlines())}")


def note(message: str) -> None:
    """Print one line of log on stderr, above the progress bar if there is one."""
    stderr.print(printable(message))


def show(line: object = "") -> None:
    """Print one line of the result on stdout."""
    typer.echo(printable(str(line)))


def show_json(value: Any) -> None:
    """Print the result as JSON on stdout."""
    typer.echo(json.dumps(value, indent=1, allow_nan=False))


def show_table(title: str, columns: list[str], rows: list[list[str]], left: int = 1) -> None:
    """Print a table on stdout; the first `left` columns are text, the others numbers.

    Args:
        title: above it; empty for none.
        columns: their heads.
        rows: texts of the cells.
        left: how many columns are text.
    """
    if title:
        show(title)
    table = Table(box=None, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(printable(column), justify="left" if index < left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(printable(cell) for cell in row))
    width = None if Console().is_terminal else 200
    Console(highlight=False, markup=False, emoji=False, width=width).print(table)


@contextmanager
def progress_bar(title: str, total: int | None) -> Iterator[Callable[[str | None, float], None]]:
    """Draw a bar on stderr while the block runs; nothing is drawn where stderr is no terminal.

    Args:
        title: beside the bar.
        total: pieces of work.

    Yields:
        A function that takes a new title, or None for the same, and the number of pieces that are done.
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=stderr, disable=not stderr.is_terminal, transient=True) as progress:
        task: TaskID = progress.add_task(printable(title), total=total or 1)

        def update(description: str | None, completed: float) -> None:
            progress.update(task, description=printable(description or title), completed=completed)

        yield update


class StagedBar(ExitStack):
    """A progress bar for each stage of some work, drawn with the first news of how much there is to do."""

    def __init__(self) -> None:
        super().__init__()
        self._stage: str | None = None
        self._update: Callable[[str | None, float], None]

    def show(self, stage: str, text: str | None, done: int, total: int, *opening: str) -> None:
        """Show that `done` of `total` pieces are there; a new stage begins with the lines in `opening`."""
        if stage != self._stage:
            self.close()
            self._stage = stage
            for line in opening:
                note(line)
            self._update = self.enter_context(progress_bar(stage, total))
        self._update(text, done)
