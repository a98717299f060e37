"""The lanes of a category, and which of them a priority takes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Lane", "Lanes"]

#: The suffix that streams of dead letters have.
DEAD = "dlq"


class Lane(Enum):
    """One of the two streams of a category."""

    PRIMARY = "primary"
    """What people wait for; read first."""
    BACKFILL = "backfill"
    """What has time; read while there is nothing in the primary lane."""


@dataclass(frozen=True)
class Lanes:
    """How categories are parted into lanes: what is less urgent than `threshold` takes the lane `CATEGORY:SUFFIX`."""

    enabled: bool = True
    """Whether there are two; else everything is in one."""
    threshold: int = 0
    """What is less urgent takes the backfill lane."""
    suffix: str = "backfill"
    """Of the backfill lane, without the colon."""

    def __post_init__(self) -> None:
        if not self.suffix.strip() or self.suffix.strip() != self.suffix:
            raise ValueError("the suffix of the backfill lane must be a word, such as `backfill`")
        if self.suffix == DEAD:
            raise ValueError("the suffix must not be `dlq`: there the dead letters of the primary lane are")
        if ":" in self.suffix:
            raise ValueError(f"the suffix must have no colon: say `{self.suffix.replace(':', '-')}`")

    def lane_of(self, priority: int) -> Lane:
        """The lane that something so urgent takes."""
        return Lane.BACKFILL if self.enabled and priority < self.threshold else Lane.PRIMARY

    def stream(self, category: str, lane: Lane) -> str:
        """The stream that a lane is."""
        return category if lane is Lane.PRIMARY else f"{category}:{self.suffix}"

    def stream_of(self, category: str, priority: int) -> str:
        """The stream that something so urgent goes to."""
        return self.stream(category, self.lane_of(priority))

    def all(self) -> tuple[Lane, ...]:
        """Those there are, the more urgent first."""
        return (Lane.PRIMARY, Lane.BACKFILL) if self.enabled else (Lane.PRIMARY,)


def dead_letters_of(stream: str) -> str:
    """Where the dead letters of a stream are."""
    return f"{stream}:{DEAD}"
