"""Databases of ROS 2 (.db3): tables of topics and messages.

A database can hold views in place of tables that never end, or that compute anything. So only plain tables
are read, nothing in the schema is trusted, and a query may take so many steps as the file can have rows.
"""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from primaldepth.io.files import open_file
from primaldepth.io.sequences.bags.index import MAX_CONNECTIONS, Connection, Rows
from primaldepth.io.sequences.bags.packing import MAX_UNPACKED

_STEPS = 10_000  # of the database's machine between two looks at the budget
_BUDGET, _PER_BYTE = 10**7, 4  # steps of a query, and more of them for each byte of the file


class SqliteFile:
    """A .db3 file.

    Args:
        path: of the file.
    """

    ros = 2

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._opened() as database:
            self._check_tables(database)
            topics = database.execute("SELECT id, name, type FROM topics LIMIT ?", (MAX_CONNECTIONS,))
            self.connections = {
                number: Connection(name, kind)
                for number, name, kind in topics
                if isinstance(number, int) and isinstance(name, str) and isinstance(kind, str)
            }

    def rows(self, connection: int) -> Rows:
        """Return (n, 3): time in ns, 0, and the number of the row."""
        query = (
            "SELECT timestamp, 0, rowid FROM messages WHERE topic_id = ? AND typeof(timestamp) = 'integer'"
        )
        with self._opened() as database:
            return np.fromiter(database.execute(query, (connection,)), np.dtype((np.int64, 3)))

    def message(self, connection: int, first: int, second: int) -> bytes:
        """Return the bytes of the message in a row."""
        query = (
            "SELECT data FROM messages "
            "WHERE rowid = ? AND topic_id = ? AND typeof(data) = 'blob' AND length(data) <= ?"
        )
        with self._opened() as database:
            found = database.execute(query, (second, connection, MAX_UNPACKED)).fetchone()
        if found is None:
            raise ValueError("a message has no bytes")
        return bytes(found[0])

    def _check_tables(self, database: sqlite3.Connection) -> None:
        query = (
            "SELECT count(*) FROM sqlite_master "
            "WHERE type = 'table' AND name = ? AND sql LIKE 'CREATE TABLE%'"
        )
        for name in ("topics", "messages"):
            (there,) = database.execute(query, (name,)).fetchone()
            columns = database.execute(f"PRAGMA table_xinfo({name})").fetchall()
            if not there or any(column[-1] for column in columns):  # the last says that it is computed
                raise ValueError("it has no plain tables of topics and messages")

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        open_file(self.path).close()
        database = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            if sys.version_info >= (3, 11):
                database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_UNPACKED)
            database.execute("PRAGMA trusted_schema = OFF")
            database.execute("PRAGMA cell_size_check = ON")
            budget = [_BUDGET + _PER_BYTE * self.path.stat().st_size]

            def is_over() -> bool:
                budget[0] -= _STEPS
                return budget[0] < 0

            database.set_progress_handler(is_over, _STEPS)
            yield database
        finally:
            database.close()
