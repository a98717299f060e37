"""The broker's addresses come from OVERTAKE_AMQP_URL and OVERTAKE_HTTP_URL; a broker of a test's own from OVERTAKE_BINARY."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from overtake import AsyncClient, Client, current_priority

from .broker import Broker, Guest
from .redis_server import RedisServer, needed


@pytest.fixture(scope="session")
def amqp() -> str:
    """Where the broker speaks AMQP."""
    return os.environ["OVERTAKE_AMQP_URL"]


@pytest.fixture(scope="session")
def http() -> str:
    """Where the broker serves HTTP."""
    return os.environ["OVERTAKE_HTTP_URL"]


@pytest.fixture(scope="session")
def guest(http: str) -> Iterator[Guest]:
    """The user guest, who asks over HTTP."""
    with Guest(http) as guest:
        yield guest


@pytest.fixture
def name() -> str:
    """A name that nobody else has: names outlive their test, tests share the broker."""
    return f"python-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def client(amqp: str, http: str) -> Iterator[Client]:
    with Client(amqp, http=http) as client:
        yield client


@pytest.fixture
async def aclient(amqp: str, http: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(amqp, http=http) as client:
        yield client


@pytest.fixture
def queue(client: Client, name: str) -> Iterator[str]:
    """A queue that knows the five words."""
    client.declare_queue(name, scheme="signed")
    yield name
    client.delete_queue(name)


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    """A broker that a test may do to whatever it likes."""
    with Broker(tmp_path) as broker:
        yield broker


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis that a test may do to whatever it likes."""
    needed()
    with RedisServer(tmp_path) as server:
        yield server


@pytest.fixture(autouse=True)
def _no_scope_is_left() -> Iterator[None]:
    yield
    assert current_priority() == 0
