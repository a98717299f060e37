"""Events in an outbox table, over the drivers that people have."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiosqlite
import asyncpg
import psycopg
import pymysql
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from overtake import Priority, processing_priority
from overtake.outbox import Event, Outbox

from .databases import MARIADB, POSTGRES, SQLITE, MariaDb, Postgres
from .rows import row

WRITE = "write events into an outbox table, in the application's own transaction"
READ = "SELECT message_id, stream, type, data, metadata, priority, partition_key, status FROM outbox ORDER BY id"
EVENT: dict[str, Any] = {"stream": "customer", "type": "CustomerUpdated", "data": {"id": 7, "name": "Ägnes"}}


@contextlib.contextmanager
def directory() -> Iterator[Path]:
    """One that also who is not root may enter."""
    path = Path(tempfile.mkdtemp(prefix="overtake-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with directory() as path, Postgres(path) as database:
        with psycopg.connect(**database.options, dbname="postgres") as connection:
            connection.execute(POSTGRES)
        yield database


@pytest.fixture
def pg(postgres: Postgres) -> Iterator[psycopg.Connection]:
    with psycopg.connect(**postgres.options, dbname="postgres") as connection:
        connection.execute("DELETE FROM outbox")
        connection.commit()
        yield connection


@pytest.fixture
def lite(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(tmp_path / "app.db")
    connection.execute(SQLITE)
    with contextlib.closing(connection):
        yield connection


def told(row: Any) -> list[Any]:
    """A row, with JSON read."""
    return [json.loads(each) if isinstance(each, str) and each[:1] in "{[" else each for each in row]


@row(WRITE)
def test_it_is_there_when_the_transaction_is_and_has_the_priority_of_the_scope_plain(lite: sqlite3.Connection) -> None:
    outbox = Outbox()
    with lite, processing_priority(Priority.LOW):
        first = outbox.write(lite, **EVENT, metadata={"trace": 1}, key="7")
        second = outbox.write(lite.cursor(), **EVENT, priority=0, message_id="m2")
    with contextlib.suppress(KeyError), lite:
        outbox.write(lite, **EVENT)
        raise KeyError
    with lite:
        outbox.write(lite, **EVENT, message_id="m3")
    rows = [told(each) for each in lite.execute(READ)]
    same = ["customer", "CustomerUpdated", EVENT["data"]]
    assert rows == [
        [first, *same, {"trace": 1}, -50, "7", "pending"],
        [second, *same, None, 0, None, "pending"],
        ["m3", *same, None, 0, None, "pending"],
    ]


@row(WRITE)
async def test_it_is_there_when_the_transaction_is_and_has_the_priority_of_the_scope_asyncio(
    postgres: Postgres, pg: psycopg.Connection
) -> None:
    outbox = Outbox()
    connection = await asyncpg.connect(**postgres.options, database="postgres")
    try:
        async with processing_priority(Priority.BULK), connection.transaction():
            await outbox.write_async(connection, **EVENT, metadata={"trace": 1}, key="7", message_id="m1")
        with contextlib.suppress(KeyError):
            async with connection.transaction():
                await outbox.write_async(connection, **EVENT)
                raise KeyError
    finally:
        await connection.close()
    rows = [list(each) for each in pg.execute(READ)]
    assert rows == [["m1", "customer", "CustomerUpdated", EVENT["data"], {"trace": 1}, -100, "7", "pending"]]


def events(count: int) -> list[Event]:
    return [Event(stream="s", type="T", data={"n": number}, key=f"k{number}") for number in range(count)]


def test_many_are_written_in_their_order(lite: sqlite3.Connection, pg: psycopg.Connection) -> None:
    for connection in (lite, pg):
        Outbox().write_all(connection, events(1_201))
        found = [
            json.loads(each) if isinstance(each, str) else each
            for (each,) in connection.execute("SELECT data FROM outbox ORDER BY id")
        ]
        assert found == [{"n": number} for number in range(1_201)]
        Outbox().write_all(connection, [])


def test_another_table_has_other_names(lite: sqlite3.Connection, pg: psycopg.Connection) -> None:
    columns = {"stream": "50% of: it", "type": "type", "data": "data", "message_id": "key", "priority": "urgency"}
    none = {"metadata": None, "partition_key": None}
    create = 'CREATE TABLE {} ("50% of: it" text, type text, data text, key text, urgency integer)'
    lite.execute(create.format("events"))
    pg.execute("CREATE SCHEMA IF NOT EXISTS shop")
    pg.execute(create.format("shop.events"))
    Outbox("main.events", {**columns, **none}).write(lite, **EVENT, message_id="m")
    lite.commit()
    Outbox("shop.events", {**columns, **none}).write(pg, **EVENT, message_id="m")
    engine = sqlalchemy.create_engine("sqlite://", creator=lambda: lite)
    with engine.connect() as connection:
        Outbox("events", {**columns, **none}).write(connection, **EVENT, message_id="m2")
        connection.commit()
    expected = [("customer", "CustomerUpdated", json.dumps(EVENT["data"], ensure_ascii=False), "m", 0)]
    assert lite.execute("SELECT * FROM events").fetchall() == [*expected, (*expected[0][:3], "m2", 0)]
    assert pg.execute("SELECT * FROM shop.events").fetchall() == expected
    pg.rollback()


def test_over_psycopg_and_sqlalchemy(postgres: Postgres, pg: psycopg.Connection) -> None:
    outbox = Outbox()
    with pg.cursor() as cursor:
        outbox.write(cursor, **EVENT, message_id="1")
    pg.commit()
    engine = sqlalchemy.create_engine(f"postgresql+psycopg://{postgres.address}")
    with engine.begin() as connection:
        outbox.write(connection, **EVENT, message_id="2", metadata={"a": ":b"})
    with Session(engine) as session, session.begin(), processing_priority(Priority.HIGH):
        outbox.write(session, **EVENT, message_id="3")
    with Session(engine) as session:
        outbox.write(session, **EVENT, message_id="rolled back")
    engine.dispose()
    found = [(each[0], each[5]) for each in pg.execute(READ)]
    assert found == [("1", 0), ("2", 0), ("3", 50)]


async def test_over_psycopg_and_sqlalchemy_asyncio(postgres: Postgres, pg: psycopg.Connection) -> None:
    outbox = Outbox()
    async with await psycopg.AsyncConnection.connect(**postgres.options, dbname="postgres") as connection:
        await outbox.write_async(connection, **EVENT, message_id="1")
        async with connection.cursor() as cursor:
            await outbox.write_all_async(cursor, [Event(**EVENT, message_id="2")])
        with pytest.raises(TypeError, match="write_async"):
            outbox.write(connection, **EVENT)
    engine = create_async_engine(f"postgresql+asyncpg://{postgres.address}")
    async with AsyncSession(engine) as session, session.begin():
        await outbox.write_async(session, **EVENT, message_id="3")
    async with engine.begin() as alone:
        await outbox.write_async(alone, **EVENT, message_id="4")
    await engine.dispose()
    assert [each[0] for each in pg.execute(READ)] == ["1", "2", "3", "4"]


@pytest.fixture
async def alite(tmp_path: Path) -> AsyncIterator[aiosqlite.Connection]:
    async with aiosqlite.connect(tmp_path / "app.db") as connection:
        await connection.execute(SQLITE)
        yield connection


async def test_over_aiosqlite(alite: aiosqlite.Connection) -> None:
    await Outbox().write_async(alite, **EVENT, message_id="1")
    await alite.commit()
    async with alite.execute(READ) as cursor:
        assert [each[0] for each in await cursor.fetchall()] == ["1"]


def test_over_pymysql() -> None:
    with directory() as path, MariaDb(path) as database:
        user = "root" if os.geteuid() == 0 else None
        connection: Any = pymysql.connect(unix_socket=database.socket, user=user)
        with contextlib.closing(connection), connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE app")
            cursor.execute("USE app")
            cursor.execute(MARIADB)
            with processing_priority(Priority.LOW):
                Outbox().write(connection, **EVENT, message_id="1", metadata={"a": "100%"})
            Outbox().write_all(cursor, [Event(**EVENT, message_id="2")])
            connection.commit()
            cursor.execute(READ)
            rows = [told(each) for each in cursor.fetchall()]
        same = ["customer", "CustomerUpdated", EVENT["data"]]
        assert rows == [
            ["1", *same, {"a": "100%"}, -50, None, "pending"],
            ["2", *same, None, 0, None, "pending"],
        ]


def test_what_cannot_be_is_told(lite: sqlite3.Connection) -> None:
    with pytest.raises(TypeError, match="no connection that is known"):
        Outbox().write(object(), **EVENT)
    with pytest.raises(ValueError, match="columns that are written"):
        Outbox(columns={"colour": "x"})
    for name in ("", "a;b", 'a"b', "x" * 64, "a..b"):
        with pytest.raises(ValueError, match=r"name|character|longer"):
            Outbox(name)
    with pytest.raises(ValueError, match=r"JSON|Out of range"):
        Outbox().write(lite, stream="s", type="T", data=float("nan"))
    with pytest.raises(ValueError, match="no priority"):
        Event(**EVENT, priority=2**31)


async def test_a_plain_connection_is_not_awaited(lite: sqlite3.Connection) -> None:
    with pytest.raises(TypeError, match="use `write`"):
        await Outbox().write_async(lite, **EVENT)
