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

#: Where a lane has so many entries that failed and wait, nothing new is fetched of it.
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
    def __init__(self) -> None:
        self.ready: deque[Entry] = deque()
        self.out: set[str] = set()
        self.later: dict[str, tuple[float, int, Later]] = {}
        #: When, in which order, which; some are not in `later` any more.
        self.heap: list[tuple[float, int, str]] = []


class Held:
    """What is held, of both lanes. Any thread may ask."""

    def __init__(self) -> None:
        self._lots = {lane: _Lot() for lane in Lane}
        self._count = itertools.count()
        self._lock = threading.RLock()

    def has(self, lane: Lane, entry_id: str) -> bool:
        """Whether it is held."""
        with self._lock:
            lot = self._lots[lane]
            return entry_id in lot.out or entry_id in lot.later or any(entry.id == entry_id for entry in lot.ready)

    def fetch(self, entry: Entry) -> None:
        """Takes in what was fetched, unless it is here already."""
        with self._lock:
            if not self.has(entry.lane, entry.id):
                self._lots[entry.lane].ready.append(entry)

    def take(self, lane: Lane) -> Entry | None:
        """The next of a lane, to be handed over."""
        with self._lock:
            lot = self._lots[lane]
            if not lot.ready:
                return None
            entry = lot.ready.popleft()
            lot.out.add(entry.id)
            return entry

    def put_back(self, entry: Entry) -> None:
        """Nobody took it after all."""
        with self._lock:
            lot = self._lots[entry.lane]
            if entry.id in lot.out:
                lot.out.discard(entry.id)
                lot.ready.appendleft(entry)

    def forget(self, lane: Lane, entry_id: str) -> None:
        """It is settled, or somebody else's."""
        with self._lock:
            lot = self._lots[lane]
            lot.out.discard(entry_id)
            lot.later.pop(entry_id, None)
            if any(entry.id == entry_id for entry in lot.ready):
                lot.ready = deque(entry for entry in lot.ready if entry.id != entry_id)

    def is_out(self, lane: Lane, entry_id: str) -> bool:
        """Whether it is handed over and not settled."""
        with self._lock:
            return entry_id in self._lots[lane].out

    def has_out(self) -> bool:
        """Whether anything is."""
        with self._lock:
            return any(lot.out for lot in self._lots.values())

    def postpone(self, lane: Lane, due: float, later: Later) -> None:
        """It waits."""
        with self._lock:
            self.forget(lane, later.id)
            lot, count = self._lots[lane], next(self._count)
            lot.later[later.id] = (due, count, later)
            heapq.heappush(lot.heap, (due, count, later.id))

    def due(self, lane: Lane, now: float) -> Later | None:
        """One that is due, which is not held any more."""
        with self._lock:
            at = self._next_of(self._lots[lane])
            if at is None or at > now:
                return None
            lot = self._lots[lane]
            _, _, entry_id = heapq.heappop(lot.heap)
            return lot.later.pop(entry_id)[2]

    def next_due(self) -> float | None:
        """When the next one is due."""
        with self._lock:
            times = [at for lot in self._lots.values() if (at := self._next_of(lot)) is not None]
            return min(times, default=None)

    def _next_of(self, lot: _Lot) -> float | None:
        while lot.heap:
            at, count, entry_id = lot.heap[0]
            if entry_id in lot.later and lot.later[entry_id][1] == count:
                return at
            heapq.heappop(lot.heap)
        return None

    def has_room(self, lane: Lane) -> bool:
        """Whether more may be fetched of a lane."""
        return len(self._lots[lane].later) < LATER_MAX

    def ids(self, lane: Lane) -> list[str]:
        """All of a lane."""
        with self._lock:
            lot = self._lots[lane]
            return [*(entry.id for entry in lot.ready), *lot.out, *lot.later]

    def give_up(self, lane: Lane, now: float) -> list[tuple[str, int, float]]:
        """Gives up what is not handed over: the ids, how often each was tried, and how many seconds until it is due."""
        with self._lock:
            lot = self._lots[lane]
            # What was fetched and not handed over was not tried.
            given = [(entry.id, max(entry.attempt - 1, 0), 0.0) for entry in lot.ready]
            given += [(later.id, later.attempts, max(due - now, 0.0)) for due, _, later in lot.later.values()]
            lot.ready.clear()
            lot.later.clear()
            lot.heap.clear()
            return given
