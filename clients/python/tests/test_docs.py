"""What the pages show runs: each page is one program, block by block, against the broker."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from .broker import Guest
from .databases import SQLITE
from .redis_server import RedisServer
from .rows import PAGE

README = Path(__file__).parents[1] / "README.md"
RECIPES = PAGE.parent / "recipes.md"
STREAMS = PAGE.parent / "streams.md"

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: Path, amqp: str, http: str) -> list[tuple[int, str]]:
    """The blocks of a page and their lines, with our broker in place of localhost's."""
    text = page.read_text()
    found = []
    for match in BLOCK.finditer(text):
        code = re.sub(r'(Client\()"amqp://localhost"', rf'\1"{amqp}", http="{http}"', match[1])
        found.append((text.count("\n", 0, match.start(1)), code.replace('"amqp://localhost"', f'"{amqp}"')))
    return found


def application() -> sqlite3.Connection:
    """The database of an application that has an outbox."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute("CREATE TABLE customer (id integer, tier text)")
    connection.execute(SQLITE)
    return connection


@pytest.mark.parametrize("page", [README, RECIPES, STREAMS], ids=lambda page: page.stem)
def test_every_example_runs(page: Path, amqp: str, http: str, guest: Guest, redis_server: RedisServer) -> None:
    given = {"migration_data": [{"id": number, "tier": "gold"} for number in range(3)], "connection": application()}
    names: dict[str, Any] = {"__name__": "example", **given}
    found = [(line, code.replace("redis://localhost", redis_server.url)) for line, code in blocks(page, amqp, http)]
    assert found, "the page has examples"
    with asyncio.Runner() as runner:
        for line, source in found:
            # As many lines before it as on the page, so that an error names the right one.
            tree = compile("\n" * line + source, str(page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            result = eval(tree, names)
            if inspect.iscoroutine(result):
                runner.run(result)
    for queue in ("customers", "mails", "prices", "jobs", "work", "mail", "orders", "render"):
        guest.delete(f"/v1/queues/{queue}")


def test_the_four_examples_of_the_scope_do_what_they_say(amqp: str, http: str, guest: Guest) -> None:
    names: dict[str, Any] = {"migration_data": [{"id": 1, "tier": "gold"}]}
    for _, source in blocks(README, amqp, http)[:4]:
        exec(source, names)
    names["client"].close()
    page = guest.ask("GET", "/v1/queues/customers/messages?order=published")
    assert [message["priority"] for message in page["messages"]] == [-50, -50, 100, -50, -100, 100]
    guest.ask("DELETE", "/v1/queues/customers")
