"""Numbers on what is published, so that what is published again in doubt is taken once.

Invariant: the floor is the least number whose fate is open; the broker may forget what is below.
"""

from __future__ import annotations

import uuid
from typing import Any

PRODUCER_HEADER = "x-overtake-producer"
SEQUENCE_HEADER = "x-overtake-sequence"
FLOOR_HEADER = "x-overtake-floor"


class Numbering:
    """The numbers of one client's life. Not for several threads at once."""

    def __init__(self) -> None:
        self.producer = uuid.uuid4().hex
        self._next = 0
        self._open: dict[int, None] = {}  # In order, since dicts are.

    def next(self) -> int:
        """A number that none had; its fate is open until `close`."""
        number = self._next
        self._next += 1
        self._open[number] = None
        return number

    def close(self, number: int) -> None:
        """It was confirmed, refused or given up: it will not be published again."""
        self._open.pop(number, None)

    def headers(self, number: int) -> dict[str, Any]:
        """What the message says of itself."""
        floor = next(iter(self._open), self._next)
        return {PRODUCER_HEADER: self.producer, SEQUENCE_HEADER: number, FLOOR_HEADER: floor}
