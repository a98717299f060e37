"""How often, and when, what failed is tried again."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..durations import Duration, seconds

__all__ = ["Retry"]


@dataclass(frozen=True)
class Retry:
    """When what failed is tried again, and how often it is tried in all."""

    attempts: int = 3
    """So many times an entry is handed over before it is a dead letter; at least 1."""
    initial_s: Duration = 1.0
    """How long until the second attempt: seconds, or with a unit as in `"250ms"`, or a `timedelta`."""
    multiplier: float = 2.0
    """So many times longer is each wait than the one before; at least 1."""
    max_s: Duration = 60.0
    """The longest wait, as in `initial_s`."""

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError("an entry must be tried at least once: set `attempts` to 1 or more")
        if not math.isfinite(self.multiplier) or self.multiplier < 1:
            raise ValueError("`multiplier` must be a number from 1 on: waits do not become shorter")
        if not (self.first >= 0 and self.longest >= 0):
            raise ValueError("`initial_s` and `max_s` are durations, from 0 on")

    @property
    def first(self) -> float:
        """The wait until the second attempt, seconds."""
        return seconds(self.initial_s, "initial_s")

    @property
    def longest(self) -> float:
        """The longest wait, seconds."""
        return seconds(self.max_s, "max_s")

    def wait_after(self, attempts: int) -> float:
        """The wait after so many attempts, seconds; none where there was none."""
        if attempts < 1:
            return 0.0
        try:
            return min(self.first * self.multiplier ** (attempts - 1), self.longest)
        except OverflowError:
            return self.longest

    def is_over(self, attempts: int) -> bool:
        """Whether so many attempts were the last."""
        return attempts >= self.attempts
