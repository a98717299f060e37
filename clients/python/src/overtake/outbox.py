"""Events written into an outbox table, in the transaction that does what they tell of; `overtake relay` publishes them from there.

```python
from overtake.outbox import Outbox

outbox = Outbox()
with connection:  # a transaction of sqlite3; of psycopg, pymysql, SQLAlchemy …
    connection.execute("UPDATE customer SET tier = 'gold' WHERE id = 7")
    outbox.write(connection, stream="customer", type="CustomerUpdated", data={"id": 7})
```

An event has the priority it says, else the scope's, else `Priority.NORMAL`. Nothing is committed here: whoever has the transaction ends it.
"""

from __future__ import annotations

import inspect
import json
import sys
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from .priority import checked, current_priority

__all__ = ["Event", "Outbox"]

Dialect = Literal["postgresql", "mysql", "sqlite"]

#: The columns that a writer fills, as they are called where nobody says other names. The others have defaults.
WRITTEN = ("message_id", "stream", "type", "data", "metadata", "priority", "partition_key")
#: Longest name, bytes: PostgreSQL would cut it off.
NAME_LEN_MAX = 63
#: So many events go into one statement; SQLite may take no more than 999 arguments.
AT_ONCE: Mapping[Dialect, int] = {"postgresql": 500, "mysql": 500, "sqlite": 100}

#: Whose SQL a package speaks.
DRIVERS: Mapping[str, Dialect] = {
    "aiosqlite": "sqlite",
    "asyncpg": "postgresql",
    "mariadb": "mysql",
    "mysql": "mysql",
    "MySQLdb": "mysql",
    "pg8000": "postgresql",
    "psycopg": "postgresql",
    "psycopg2": "postgresql",
    "pymysql": "mysql",
    "sqlite3": "sqlite",
}

#: Where an argument stands, by PEP 249's words.
PLACEHOLDERS = {"format": "%s", "pyformat": "%s", "qmark": "?", "numeric": ":{0}", "dollar": "${0}", "named": ":p{0}"}


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened, to be told."""

    stream: str
    """Where it goes: a category, such as `customer`."""
    type: str
    """What kind it is, such as `CustomerUpdated`."""
    data: Any
    """What it is about: anything that JSON can say."""
    metadata: Any = None
    """What else is to be known of it, as JSON can say it."""
    key: str | None = None
    """What it is about in one word: the relay can keep the order of events with the same key."""
    priority: int = field(default_factory=current_priority)
    """How urgent it is; else as the scope in which this is made, else `Priority.NORMAL`."""
    message_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    """Its id, by which brokers and handlers know that they have it already."""

    def __post_init__(self) -> None:
        checked(self.priority)

    def _arguments(self) -> dict[str, Any]:
        return {
            "message_id": self.message_id,
            "stream": self.stream,
            "type": self.type,
            "data": _json(self.data),
            "metadata": None if self.metadata is None else _json(self.metadata),
            "priority": int(self.priority),
            "partition_key": self.key,
        }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


class Outbox:
    """Where events are written to: by default the table as `overtake relay init` makes it."""

    def __init__(self, table: str = "outbox", columns: Mapping[str, str | None] | None = None) -> None:
        """A table, as `NAME` or `SCHEMA.NAME`, and what its columns are called that have another name.

        Ours are `message_id`, `stream`, `type`, `data`, `metadata`, `priority` and `partition_key`. None: there is no such column, and
        nothing is written there.
        """
        unknown = set(columns or {}) - set(WRITTEN)
        if unknown:
            raise ValueError(f"{', '.join(sorted(unknown))}: the columns that are written are {', '.join(WRITTEN)}")
        names = {column: (columns or {}).get(column, column) for column in WRITTEN}
        self._table = [_checked(part) for part in table.split(".")]
        self._columns = {column: _checked(name) for column, name in names.items() if name is not None}

    def write(
        self,
        connection: Any,
        *,
        stream: str,
        type: str,  # noqa: A002 - that is what it is called everywhere
        data: Any,
        metadata: Any = None,
        key: str | None = None,
        priority: int | None = None,
        message_id: str | None = None,
    ) -> str:
        """Writes an event in the transaction that is open here, and answers with its id.

        `connection`: a connection, or a cursor, of sqlite3, psycopg, psycopg2, pymysql or another driver by PEP 249; a `Connection` or a
        `Session` of SQLAlchemy.
        """
        event = _event(stream, type, data, metadata, key, priority, message_id)
        self.write_all(connection, [event])
        return event.message_id

    def write_all(self, connection: Any, events: Iterable[Event]) -> None:
        """Writes events, in this order, hundreds in a statement."""
        target = _target(connection)
        for sql, arguments in self._statements(target, events):
            if target.is_sqlalchemy:
                done = connection.execute(_text(sql), arguments)
                _done_already(done)
            elif hasattr(connection, "cursor"):
                cursor = connection.cursor()
                try:
                    _done_already(cursor.execute(sql, arguments))
                finally:
                    closed = cursor.close()
                    if inspect.iscoroutine(closed):
                        closed.close()
            else:
                _done_already(connection.execute(sql, arguments))

    async def write_async(
        self,
        connection: Any,
        *,
        stream: str,
        type: str,  # noqa: A002 - as in `write`
        data: Any,
        metadata: Any = None,
        key: str | None = None,
        priority: int | None = None,
        message_id: str | None = None,
    ) -> str:
        """As `write`, with asyncio.

        `connection`: of asyncpg, of psycopg (`AsyncConnection`, `AsyncCursor`), of aiosqlite, or of SQLAlchemy (`AsyncConnection`,
        `AsyncSession`).
        """
        event = _event(stream, type, data, metadata, key, priority, message_id)
        await self.write_all_async(connection, [event])
        return event.message_id

    async def write_all_async(self, connection: Any, events: Iterable[Event]) -> None:
        """Writes events, in this order, hundreds in a statement."""
        target = _target(connection)
        for sql, arguments in self._statements(target, events):
            if target.is_sqlalchemy:
                done = connection.execute(_text(sql), arguments)
            elif target.package == "asyncpg":
                done = connection.execute(sql, *arguments)
            else:
                done = connection.execute(sql, arguments)
            if not inspect.isawaitable(done):
                raise TypeError(f"{_named(connection)} is for plain code: use `write`")
            await done

    def _statements(self, target: _Target, events: Iterable[Event]) -> Iterable[tuple[str, Any]]:
        rest = iter(events)
        while some := list(islice(rest, AT_ONCE[target.dialect])):
            yield self._insert(target, some)

    def _insert(self, target: _Target, events: list[Event]) -> tuple[str, Any]:
        table = ".".join(target.quoted(part) for part in self._table)
        names = ", ".join(target.quoted(name) for name in self._columns.values())
        arguments: list[Any] = []
        rows = []
        for event in events:
            all_of_it = event._arguments()
            row = []
            for column in self._columns:
                arguments.append(all_of_it[column])
                place = PLACEHOLDERS[target.style].format(len(arguments))
                # From JSON there is a way into columns of JSON and of text; from text there is none into JSON.
                is_json = target.dialect == "postgresql" and column in ("data", "metadata")
                row.append(f"CAST({place} AS json)" if is_json else place)
            rows.append(f"({', '.join(row)})")
        sql = f"INSERT INTO {table} ({names}) VALUES {', '.join(rows)}"
        if target.is_sqlalchemy:
            return sql, {f"p{number}": each for number, each in enumerate(arguments, 1)}
        return sql, arguments


def _event(
    stream: str, kind: str, data: Any, metadata: Any, key: str | None, priority: int | None, message_id: str | None
) -> Event:
    said: dict[str, Any] = {"priority": priority, "message_id": message_id}
    given = {name: value for name, value in said.items() if value is not None}
    return Event(stream=stream, type=kind, data=data, metadata=metadata, key=key, **given)


@dataclass(frozen=True)
class _Target:
    """How a connection is asked."""

    package: str
    dialect: Dialect
    style: str

    @property
    def is_sqlalchemy(self) -> bool:
        return self.package == "sqlalchemy"

    def quoted(self, name: str) -> str:
        """A name as it stands in a statement, whatever is in it."""
        mark = "`" if self.dialect == "mysql" else '"'
        name = f"{mark}{name.replace(mark, mark * 2)}{mark}"
        if self.is_sqlalchemy:
            return name.replace(":", "\\:")
        return name.replace("%", "%%") if PLACEHOLDERS[self.style] == "%s" else name


def _target(connection: Any) -> _Target:
    for kind in type(connection).__mro__:
        package = kind.__module__.partition(".")[0]
        if package == "sqlalchemy":
            return _Target(package, _of_sqlalchemy(connection), "named")
        if package == "asyncpg":
            return _Target(package, "postgresql", "dollar")
        if package in DRIVERS:
            # Where a package does not say, as it is with sqlite3's child for asyncio.
            style = getattr(sys.modules.get(package), "paramstyle", "qmark")
            return _Target(package, DRIVERS[package], style)
    raise TypeError(
        f"{_named(connection)} is no connection that is known here: give a connection or a cursor of "
        f"{', '.join(sorted(DRIVERS))}, or a connection or a session of SQLAlchemy"
    )


def _of_sqlalchemy(connection: Any) -> Dialect:
    bind = connection.get_bind() if hasattr(connection, "get_bind") else connection
    name = bind.dialect.name
    for dialect in AT_ONCE:
        if name == dialect or (name == "mariadb" and dialect == "mysql"):
            return dialect
    raise TypeError(f"there is no outbox in {name}: take PostgreSQL, MySQL, MariaDB or SQLite")


def _text(sql: str) -> Any:
    from sqlalchemy import text

    return text(sql)


def _done_already(done: Any) -> None:
    if inspect.isawaitable(done):
        if inspect.iscoroutine(done):
            done.close()
        raise TypeError("this is a connection for asyncio: use `await write_async(…)`")


def _named(connection: Any) -> str:
    return f"{type(connection).__module__}.{type(connection).__qualname__}"


def _checked(name: str) -> str:
    """The name of a column, or a part of a table's: what every database takes."""
    if not name:
        raise ValueError("a name is not empty")
    if len(name.encode()) > NAME_LEN_MAX:
        raise ValueError(f"`{name}` is longer than {NAME_LEN_MAX} bytes, which PostgreSQL would cut off")
    if any(not char.isprintable() or char in "\"`'.\\;" for char in name):
        raise ValueError(f"{name!r} has a character in it that no name needs")
    return name
