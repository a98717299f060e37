"""Which tests are for which row of the table in docs/clients.md: `@row("publish, …")` above each."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import TypeVar

PAGE = Path(__file__).parents[3] / "docs" / "clients.md"

#: (feature, language), and the names of its tests.
TESTS: dict[tuple[str, str], list[str]] = {}

F = TypeVar("F", bound=Callable[..., object])


def row(feature: str) -> Callable[[F], F]:
    """This test is for this row; for which column, its name says at the end."""

    def note(test: F) -> F:
        language = test.__name__.rpartition("_")[2]
        assert language in ("plain", "asyncio"), f"{test.__name__} ends with the client it is about"
        TESTS.setdefault((feature, language), []).append(test.__name__)
        return test

    return note


def table() -> dict[str, dict[str, str]]:
    """The rows of the page: what stands under `Python, plain` and `Python, asyncio`."""
    lines = PAGE.read_text().partition("## Features")[2].splitlines()
    lines = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line) for line in lines]
    lines = list(takewhile(lambda line: line.startswith("|"), dropwhile(lambda line: not line.startswith("|"), lines)))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    head = rows[0]
    plain, asyncio = head.index("Python, plain"), head.index("Python, asyncio")
    return {cells[0]: {"plain": cells[plain], "asyncio": cells[asyncio]} for cells in rows[2:]}
