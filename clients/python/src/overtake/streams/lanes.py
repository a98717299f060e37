"""The lanes of a category, and which of them a priority takes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

__all__ = ["Lane", "Lanes"]

#: The suffix that streams of dead letters have.
DEAD = "dlq"
#: The beginning of the variable of each key of the table: the broker's.
VARIABLE = "OVERTAKE__SERVER__PRIORITY_LANES__"
#: The beginning of these and of their likely misspellings: the broker has no other setting that begins so.
VARIABLES = "OVERTAKE__SERVER__PRIORITY"
#: The keys of the table, and what each must be.
KEYS = {"enabled": "true or false", "threshold": "a whole number", "backfill_suffix": "a text"}


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

    @classmethod
    def read(cls, table: Mapping[str, object] | None = None, variables: Mapping[str, str] | None = None) -> Lanes:
        """The lanes of the table `[server.priority_lanes]`, as the broker and the relay have it in their files.

        A variable of the environment (`OVERTAKE__SERVER__PRIORITY_LANES__ENABLED`, `…__THRESHOLD`,
        `…__BACKFILL_SUFFIX`) goes before the table. The other keys have the broker's defaults: one lane, the
        threshold 0, the suffix `backfill`. `variables` are those of the process unless others are given. Raises
        `ValueError` about a key or a variable that cannot be, or that is misspelled.
        """
        said: dict[str, object] = {"enabled": False, "threshold": 0, "backfill_suffix": "backfill"}
        for key, value in (table or {}).items():
            if key not in KEYS:
                raise ValueError(f"the lanes have no key `{key}`: they have {', '.join(KEYS)}")
            said[key] = _checked(key, value, key)
        variables = os.environ if variables is None else variables
        known = [VARIABLE + key.upper() for key in KEYS]
        for name in variables:
            if name.startswith(VARIABLES) and name not in known:
                raise ValueError(f"there is no variable {name}; there are {', '.join(known)}")
        for key in KEYS:
            name = VARIABLE + key.upper()
            if name in variables:
                said[key] = _checked(key, _of_text(key, variables[name]), name)
        return cls(enabled=said["enabled"], threshold=said["threshold"], suffix=said["backfill_suffix"])  # type: ignore[arg-type]

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


def _of_text(key: str, text: str) -> object:
    """The value of a variable; a text where it is none of its key."""
    if key == "enabled":
        return {"true": True, "false": False}.get(text, text)
    if key == "threshold":
        try:
            return int(text)
        except ValueError:
            return text
    return text


def _checked(key: str, value: object, name: str) -> object:
    is_fine = {
        "enabled": isinstance(value, bool),
        "threshold": isinstance(value, int) and not isinstance(value, bool),
        "backfill_suffix": isinstance(value, str),
    }
    if not is_fine[key]:
        raise ValueError(f"{name} must be {KEYS[key]}, and is {value!r}")
    return value


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
