"""The lanes of a category, and which of them a priority takes."""

from __future__ import annotations

from collections.abc import Iterable
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


#: So many streams are named in one command.
CHUNK = 64
#: Longest key of a partition, characters.
KEY_LEN_MAX = 255


def is_key(key: str, lanes: Lanes) -> bool:
    """Whether a partition can have this key: such as `backfill` would be the category's own backfill lane."""
    is_inner = len(key) >= 4 and key.startswith("__") and key.endswith("__")
    return 0 < len(key) <= KEY_LEN_MAX and ":" not in key and key not in (DEAD, lanes.suffix) and not is_inner


def partitions_of(category: str) -> str:
    """The set of a category's partition keys."""
    return f"{category}:__partitions__"


def streams_with(category: str, lanes: Lanes, keys: Iterable[bytes]) -> list[tuple[Lane, str]]:
    """The streams of a category with these partition keys, its own lanes first. Keys that no partition can have are left out."""
    parts = [category, *(f"{category}:{key}" for key in map(_text, keys) if is_key(key, lanes))]
    return [(lane, lanes.stream(part, lane)) for part in parts for lane in lanes.all()]


def dead_letters_of(stream: str) -> str:
    """Where the dead letters of a stream are."""
    return f"{stream}:{DEAD}"


def _text(key: bytes) -> str:
    return key.decode("utf-8", "replace")
