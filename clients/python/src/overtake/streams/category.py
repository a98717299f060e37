"""A category for those who write into it and who see to it: entries are added, lag is told, what is settled is deleted."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import Refused
from ..priority import checked, current_priority
from . import scripts
from .lanes import CHUNK, Lane, Lanes, dead_letters_of, is_key, partitions_of, streams_with
from .steps import Ask, Fault, Steps, T, evaluate, text

__all__ = ["Lag"]

#: Where the server does not know how many entries are left, so many are counted at once, and so many times at most.
COUNT_AT_ONCE, COUNTS_MAX = 10_000, 100
#: So many streams are named in a sentence.
SHOWN = 3


@dataclass(frozen=True)
class Lag:
    """How far a group is in one lane, of all partitions."""

    lane: Lane
    """The lane."""
    waiting: int = 0
    """Entries that were handed to nobody yet; of more than a million that had to be counted in one stream, a million."""
    pending: int = 0
    """Entries that were handed over and are not settled."""
    oldest_s: int = 0
    """How long the oldest of both has been in its stream, seconds; 0 where there is none."""
    dead: int = 0
    """Dead letters, of all groups."""


def unread(category: str, lanes: Lanes, partitions: bool) -> Steps[str | None]:
    """What a category has and a subscriber with these settings never reads, in a sentence that says what to set."""
    both = replace(lanes, enabled=True)
    own = {both.stream(category, lane) for lane in both.all()}
    keys = yield Ask(("SMEMBERS", partitions_of(category)))
    streams = [
        (lane, stream)
        for lane, stream in streams_with(category, both, keys)
        if lane not in lanes.all() or (not partitions and stream not in own)
    ]
    found: list[str] = []
    settings: set[str] = set()
    for at in range(0, len(streams), CHUNK):
        some = streams[at : at + CHUNK]
        lengths = yield evaluate(scripts.LENGTHS, [stream for _, stream in some])
        for (lane, stream), length in zip(some, lengths, strict=True):
            if int(length):
                found.append(f"{stream} ({int(length)} {'entry' if int(length) == 1 else 'entries'})")
                if lane not in lanes.all():
                    settings.add("lanes")
                if not partitions and stream not in own:
                    settings.add("partitions")
    if not found:
        return None
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    wanted = "` and `".join(sorted(settings))
    return f"this subscriber never reads {', '.join(found[:SHOWN])}{more}: set `{wanted}` as whoever writes them has it"


class Work:
    """What there is to be asked about a category."""

    def __init__(self, category: str, lanes: Lanes, partitions: bool) -> None:
        if not category.strip():
            raise ValueError("`category` must be a name")
        self.category = category
        self.lanes = lanes
        self.partitions = partitions

    def told(self, steps: Steps[T]) -> Steps[T]:
        """With what the server says against it as a refusal."""
        try:
            return (yield from steps)
        except Fault as fault:
            raise _refused(self.category, str(fault)) from None

    def publish(
        self,
        data: Any,
        entry_type: str | None,
        message_id: str | None,
        metadata: Mapping[str, Any] | None,
        priority: int | None,
        key: str | None,
    ) -> Steps[str]:
        """Adds an entry to the lane of its priority."""
        urgency = current_priority() if priority is None else checked(priority)
        said = dict(metadata or {})
        said["headers"] = {"id": message_id or str(uuid.uuid4()), "type": entry_type} | dict(said.get("headers") or {})
        said["domain"] = dict(said.get("domain") or {}) | {"priority": int(urgency)}
        body = json.dumps({"data": data, "metadata": said}, allow_nan=False)
        part = self.category
        if key is not None and self.partitions:
            if not is_key(key, self.lanes):
                raise ValueError(
                    f"the partition key `{key}` cannot be part of a stream's name: it must have 1 to 255 characters and no colon, and be "
                    f"neither `dlq`, nor `{self.lanes.suffix}`, nor between two underscores on either side"
                )
            # Readers of all partitions must know of a key before there is something in its stream.
            yield Ask(("SADD", partitions_of(self.category), key))
            part = f"{self.category}:{key}"
        return text((yield Ask(("XADD", self.lanes.stream_of(part, urgency), "*", "data", body))))

    def _streams(self) -> Steps[list[list[tuple[Lane, str]]]]:
        keys = yield Ask(("SMEMBERS", partitions_of(self.category)))
        streams = streams_with(self.category, self.lanes, keys)
        return [streams[at : at + CHUNK] for at in range(0, len(streams), CHUNK)]

    def groups(self) -> Steps[list[str]]:
        """The groups of any stream."""
        found, broken = yield from self._groups()
        if broken:
            raise _refused(*broken[0])
        return sorted(found)

    def _groups(self) -> Steps[tuple[set[str], list[tuple[str, str]]]]:
        """The groups of all streams that can be read, and the others with why."""
        found: set[str] = set()
        broken: list[tuple[str, str]] = []
        for some in (yield from self._streams()):
            for told in (yield evaluate(scripts.GROUPS, [stream for _, stream in some])):
                if isinstance(told, list):
                    broken.append((text(told[0]), text(told[1])))
                else:
                    found.add(text(told))
        return found, broken

    def lag(self, group: str) -> Steps[list[Lag]]:
        """How far a group is in each lane."""
        seconds, _ = yield Ask(("TIME",))
        found = {lane: Lag(lane) for lane in self.lanes.all()}
        for some in (yield from self._streams()):
            pairs = [each for _, stream in some for each in (stream, dead_letters_of(stream))]
            told = yield evaluate(scripts.FAR, pairs, group)
            for (lane, stream), far in zip(some, told, strict=True):
                if not isinstance(far, list):
                    raise _refused(stream, text(far))
                dead, pending, waiting, at, oldest, _ = far
                if isinstance(dead, bytes):
                    raise _refused(dead_letters_of(stream), text(dead))
                left = int(waiting) if int(waiting) >= 0 else (yield from self._count(stream, text(at)))
                age_s = max(int(seconds) - int(text(oldest).partition("-")[0]) // 1000, 0) if oldest else 0
                lag = found[lane]
                found[lane] = Lag(
                    lane, lag.waiting + left, lag.pending + int(pending), max(lag.oldest_s, age_s), lag.dead + int(dead)
                )
        return list(found.values())

    def _count(self, stream: str, at: str) -> Steps[int]:
        count = 0
        for _ in range(COUNTS_MAX):
            here, last = yield evaluate(scripts.COUNT, [stream], f"({at}", COUNT_AT_ONCE)
            count += int(here)
            if int(here) < COUNT_AT_ONCE:
                break
            at = text(last)
        return count

    def trim(self) -> Steps[int]:
        """Deletes what every group has settled, also where another stream cannot be read."""
        (groups, broken), gone = (yield from self._groups()), 0
        for some in (yield from self._streams()) if groups else ():
            count, *_ = yield evaluate(scripts.TRIM, [stream for _, stream in some], *sorted(groups))
            gone += int(count)
        if broken:
            raise _refused(*broken[0])
        return gone


def _refused(stream: str, why: str) -> Refused:
    return Refused(why.partition(" ")[0], f"{stream}: {why}")
