"""How long to wait before the next attempt to connect: longer each time, and never all at once."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator

from .errors import LoginRefused

log = logging.getLogger("overtake")

FIRST_S = 0.05
MOST_S = 5.0


def waits() -> Iterator[float]:
    """Seconds before each attempt: 0.05, doubled up to 5, each between its half and its whole."""
    wait = FIRST_S
    while True:
        yield random.uniform(wait / 2, wait)
        wait = min(wait * 2, MOST_S)


class Refusals:
    """Logins that the broker refuses although it accepted the same login before: tried again slowly, and said loudly once."""

    def __init__(self, where: str, retry_s: float | None) -> None:
        self._where = where
        self._retry_s = retry_s
        self._is_refused = False

    def wait(self, refusal: LoginRefused) -> float | None:
        """Seconds until the next attempt, between half of the setting and the whole; None: the client ends."""
        if self._retry_s is None:
            log.error("the client of %s ends: %s", self._where, refusal)
            return None
        level = logging.WARNING if self._is_refused else logging.ERROR
        self._is_refused = True
        log.log(level, "the login at %s is tried again within %g s: %s", self._where, self._retry_s, refusal)
        return random.uniform(self._retry_s / 2, self._retry_s)

    def end(self) -> None:
        """A login was accepted."""
        self._is_refused = False
