"""What a consumer holds: pending under its name, and known here.

```
           ┌───────▶ ready ───▶ out ───▶ acknowledged
 fetched ──┤           ▲         │
           │           │ due     │ failed
           └─ nobody   └──── later ◀─┘
              can read it ──────▲
```

Invariant: an entry is in one of the three at most.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections import deque
from dataclasses import dataclass

from .entry import Entry, Fields
from .lanes import Lane

#: Where a stream has so many entries that failed and wait, nothing new is fetched of it.
LATER_MAX = 1_000


@dataclass(frozen=True)
class Doom:
    """What becomes of an entry that nobody will handle."""

    why: str
    fields: Fields


@dataclass(frozen=True)
class Later:
    """An entry that waits."""

    id: str
    attempts: int
    doom: Doom | None = None
    """It is to go to the dead letters; else it is tried again."""


class _Lot:
    """What is held of one stream."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.ready: deque[Entry] = deque()
        self.out: set[str] = set()
        self.later: dict[str, tuple[float, int, Later]] = {}
        #: When, in which order, which; some are not in `later` any more.
        self.heap: list[tuple[float, int, str]] = []

    def has(self, entry_id: str) -> bool:
        """Whether it is here."""
        return entry_id in self.out or entry_id in self.later or any(entry.id == entry_id for entry in self.ready)

    def next_due(self) -> tuple[float, int] | None:
        """When, and in which order, the next one is due."""
        while self.heap:
            at, count, entry_id = self.heap[0]
            if entry_id in self.later and self.later[entry_id][1] == count:
                return at, count
            heapq.heappop(self.heap)
        return None


class Held:
    """What is held, by streams. A stream of which nothing is held has no lot. Any thread may ask."""

    def __init__(self) -> None:
        self._lots: dict[str, _Lot] = {}
        self._count = itertools.count()
        self._backfill_max: int | None = None
        """The most entries of the backfill lane that are worked on at once; None: no limit."""
        #: Entries of the backfill lane (stream, id) whose work has not ended, also those that another consumer has taken over.
        self._backfill_at_work: list[tuple[str, str]] = []
        self._lock = threading.RLock()

    def _lot(self, lane: Lane, stream: str) -> _Lot:
        return self._lots.setdefault(stream, _Lot(lane))

    def _of_lane(self, lane: Lane) -> list[tuple[str, _Lot]]:
        return [(stream, lot) for stream, lot in self._lots.items() if lot.lane is lane]

    def has(self, stream: str, entry_id: str) -> bool:
        """Whether it is held."""
        with self._lock:
            return stream in self._lots and self._lots[stream].has(entry_id)

    def has_any(self, stream: str) -> bool:
        """Whether anything of a stream is held."""
        return stream in self._lots

    def has_next(self, lane: Lane, now: float) -> bool:
        """Whether something of a lane is to be handed over, or is due."""
        with self._lock:
            lots = [lot for _, lot in self._of_lane(lane)]
            return any(lot.ready or ((due := lot.next_due()) is not None and due[0] <= now) for lot in lots)

    def fetch(self, entry: Entry) -> None:
        """Takes in what was fetched, unless it is here already."""
        with self._lock:
            if not self.has(entry.stream, entry.id):
                self._lot(entry.lane, entry.stream).ready.append(entry)

    def limit_backfill(self, most: int | None) -> None:
        """Limits how many entries of the backfill lane are worked on at once."""
        self._backfill_max = most

    def has_slot(self, lane: Lane) -> bool:
        """Whether an entry of a lane may be handed over now."""
        most = self._backfill_max
        return lane is Lane.PRIMARY or most is None or len(self._backfill_at_work) < most

    def end_work(self, entry: Entry) -> bool:
        """The work on an entry has ended. Whether a slot of the backfill lane is free by that."""
        with self._lock:
            if (entry.stream, entry.id) not in self._backfill_at_work:
                return False
            self._backfill_at_work.remove((entry.stream, entry.id))
            return True

    def take(self, lane: Lane) -> Entry | None:
        """The next of a lane, to be handed over. Only where the lane has a slot."""
        with self._lock:
            lot = next((lot for _, lot in self._of_lane(lane) if lot.ready), None)
            if lot is None:
                return None
            entry = lot.ready.popleft()
            lot.out.add(entry.id)
            if lane is Lane.BACKFILL and self._backfill_max is not None:
                self._backfill_at_work.append((entry.stream, entry.id))
            return entry

    def put_back(self, entry: Entry) -> None:
        """Nobody took it after all."""
        with self._lock:
            self.end_work(entry)
            lot = self._lots.get(entry.stream)
            if lot is not None and entry.id in lot.out:
                lot.out.discard(entry.id)
                lot.ready.appendleft(entry)

    def forget(self, stream: str, entry_id: str) -> None:
        """It is settled, or somebody else's."""
        with self._lock:
            if (lot := self._lots.get(stream)) is None:
                return
            lot.out.discard(entry_id)
            lot.later.pop(entry_id, None)
            if any(entry.id == entry_id for entry in lot.ready):
                lot.ready = deque(entry for entry in lot.ready if entry.id != entry_id)
            if not (lot.ready or lot.out or lot.later):
                del self._lots[stream]

    def is_out(self, entry: Entry) -> bool:
        """Whether it is handed over and not settled."""
        with self._lock:
            return entry.stream in self._lots and entry.id in self._lots[entry.stream].out

    def has_out(self) -> bool:
        """Whether anything is."""
        with self._lock:
            return any(lot.out for lot in self._lots.values())

    def postpone(self, lane: Lane, stream: str, due: float, later: Later) -> None:
        """It waits."""
        with self._lock:
            self.forget(stream, later.id)
            lot, count = self._lot(lane, stream), next(self._count)
            lot.later[later.id] = (due, count, later)
            heapq.heappush(lot.heap, (due, count, later.id))

    def due(self, lane: Lane, now: float) -> tuple[str, Later] | None:
        """The one of a lane that was due first, and its stream. It is not held any more."""
        with self._lock:
            dues = [(due, stream) for stream, lot in self._of_lane(lane) if (due := lot.next_due()) is not None]
            if not dues or min(dues)[0][0] > now:
                return None
            stream = min(dues)[1]
            lot = self._lots[stream]
            _, _, entry_id = heapq.heappop(lot.heap)
            later = lot.later[entry_id][2]
            self.forget(stream, entry_id)
            return stream, later

    def next_due(self) -> float | None:
        """When the next one is due, of the lanes that have a slot."""
        with self._lock:
            lots = [lot for lot in self._lots.values() if self.has_slot(lot.lane)]
            times = [due[0] for lot in lots if (due := lot.next_due()) is not None]
            return min(times, default=None)

    def has_room(self, stream: str) -> bool:
        """Whether more may be fetched of a stream."""
        with self._lock:
            return stream not in self._lots or len(self._lots[stream].later) < LATER_MAX

    def streams(self) -> list[str]:
        """Those of which something is held."""
        with self._lock:
            return list(self._lots)

    def ids(self, stream: str) -> list[str]:
        """All of a stream."""
        with self._lock:
            if (lot := self._lots.get(stream)) is None:
                return []
            return [*(entry.id for entry in lot.ready), *lot.out, *lot.later]

    def give_up(self, stream: str, now: float) -> list[tuple[str, int, float]]:
        """Gives up what is not handed over: the ids, how often each was tried, and how many seconds until it is due."""
        with self._lock:
            if (lot := self._lots.get(stream)) is None:
                return []
            # What was fetched and not handed over was not tried.
            given = [(entry.id, max(entry.attempt - 1, 0), 0.0) for entry in lot.ready]
            given += [(later.id, later.attempts, max(due - now, 0.0)) for due, _, later in lot.later.values()]
            lot.ready.clear()
            lot.later.clear()
            lot.heap.clear()
            return given
