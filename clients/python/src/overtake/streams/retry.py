"""How often, and when, what failed is tried again."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Retry"]


@dataclass(frozen=True)
class Retry:
    """When what failed is tried again, and how often it is tried in all."""

    attempts: int = 3
    """So many times an entry is handed over before it is a dead letter; at least 1."""
    initial_s: float = 1.0
    """Seconds until the second attempt."""
    multiplier: float = 2.0
    """So many times longer is each wait than the one before; at least 1."""
    max_s: float = 60.0
    """The longest wait, seconds."""

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError("an entry must be tried at least once: set `attempts` to 1 or more")
        if not math.isfinite(self.multiplier) or self.multiplier < 1:
            raise ValueError("`multiplier` must be a number from 1 on: waits do not become shorter")
        if not (self.initial_s >= 0 and self.max_s >= 0):
            raise ValueError("`initial_s` and `max_s` are seconds, from 0 on")

    def wait_after(self, attempts: int) -> float:
        """The wait after so many attempts, seconds; none where there was none."""
        if attempts < 1:
            return 0.0
        try:
            return min(self.initial_s * self.multiplier ** (attempts - 1), self.max_s)
        except OverflowError:
            return self.max_s

    def is_over(self, attempts: int) -> bool:
        """Whether so many attempts were the last."""
        return attempts >= self.attempts
