"""stdout carries the result, stderr the log and the progress bar (none when it is not a terminal)."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

stderr = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)


def fail(message: str) -> None:
    """One line of error on stderr."""
    note(f"primaldepth: {' '.join(message.splitlines())}")


def note(message: str) -> None:
    """One line of log on stderr, above the progress bar if there is one."""
    stderr.print(message)


def show_json(value: Any) -> None:
    """The result as JSON on stdout."""
    typer.echo(json.dumps(value, indent=1, allow_nan=False))


def show_table(title: str, columns: list[str], rows: list[list[str]], left: int = 1) -> None:
    """A table on stdout; the first `left` columns are text, the others numbers."""
    if title:
        typer.echo(title)
    table = Table(box=None, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index < left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, width=None if Console().is_terminal else 200).print(table)


@contextmanager
def progress_bar(title: str, total: int | None) -> Iterator[Callable[[str | None, float], None]]:
    """Yields update(description or None, completed); silent when stderr is not a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=stderr, disable=not stderr.is_terminal, transient=True) as progress:
        task: TaskID = progress.add_task(title, total=total or 1)

        def update(description: str | None, completed: float) -> None:
            progress.update(task, description=description or title, completed=completed)

        yield update
