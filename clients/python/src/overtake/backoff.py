"""How long to wait before the next attempt to connect: longer each time, and never all at once."""

from __future__ import annotations

import random
from collections.abc import Iterator

FIRST_S = 0.05
MOST_S = 5.0


def waits() -> Iterator[float]:
    """Seconds before each attempt: 0.05, doubled up to 5, each between its half and its whole."""
    wait = FIRST_S
    while True:
        yield random.uniform(wait / 2, wait)
        wait = min(wait * 2, MOST_S)
