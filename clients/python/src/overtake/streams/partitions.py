"""A category that is parted by keys: each lane of each partition is a stream, of which the whole group has one entry at a time.

A stream is ready, or drained (one read waits for all of these), or away for a while because another consumer has its entry or because it
cannot be read, or we hold its entry. The pending entries of the group are the lock: a script takes an entry only of a stream of which
nothing is pending, or where whoever holds the oldest is dead.
"""

from __future__ import annotations

import heapq
import math
import time
from collections import deque
from dataclasses import dataclass

from ..errors import Refused
from . import scripts
from .entry import Entry
from .held import Doom, Later
from .lanes import CHUNK, Lane, partitions_of, streams_with
from .reading import BROKEN_MAX_S, BROKEN_S, DUE_MIN_S, Fate, Options, Reading, log
from .steps import Ask, Begin, Fault, Pause, Steps, evaluate, text

#: How often the set of keys is read, seconds.
DISCOVER_S = 1.0
#: A stream of which another consumer has an entry is tried again after so long at first, twice as long each time, and so
#: long at most, seconds.
BUSY_S, BUSY_MAX_S = 0.01, 1.0
#: Of so many streams it is always asked whether they have urgent news before something is taken of a backfill lane; of
#: more, in a tenth of the time at most.
LOOK = 256


@dataclass
class _Unit:
    """A stream."""

    lane: Lane
    is_ready: bool = True
    after: str | None = None
    """It is drained: nothing is behind this id."""
    wait_s: float = BUSY_S
    """How long it is away the next time."""
    refusal: Refused | None = None
    """Why it cannot be read."""


def reading_of(options: Options) -> Reading:
    """What reads so."""
    return PartitionReading(options) if options.partitions else Reading(options)


class PartitionReading(Reading):
    """What there is to be asked so that an entry of any partition comes."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._units: dict[str, _Unit] = {}
        self._ready: dict[Lane, deque[str]] = {lane: deque() for lane in Lane}
        self._away: list[tuple[float, str]] = []
        self._held: set[str] = set()
        """The streams of which we hold something."""
        self._discover_at = self._look_at = 0.0
        self._one_by_one = 0
        """So many streams are tried one by one: the server declined to try them together."""
        self._suspects: int | None = None
        """So many streams were broken when a read of several was declined."""

    @property
    def broken(self) -> Refused | None:
        """Why a stream is not read for now, of the primary lanes first."""
        units = sorted(self._units.values(), key=lambda unit: unit.lane is not Lane.PRIMARY)
        return next((unit.refusal for unit in units if unit.refusal), None)

    def begin(self) -> Steps[None]:
        """A connection, and the keys there are. What is pending under our name is taken when its stream is looked at."""
        yield Begin()
        try:
            self.reads_as = int((yield Ask(("CLIENT", "ID"), is_reading=True)))
        except Fault:
            self.reads_as = 0
        self._units = {stream: self._units[stream] for stream in self._held}
        self._ready = {lane: deque() for lane in Lane}
        self._away.clear()
        is_new = not self._was_begun and self.options.start == "$" and (yield from self._make_group())
        yield from self._discover()
        if is_new:
            streams = list(self._units)
            for at in range(0, len(streams), CHUNK):
                some = streams[at : at + CHUNK]
                yield evaluate(scripts.MAKE_GROUPS, some, self.options.group, is_reading=True)
        self._is_begun = self._was_begun = True
        self._refusals.end()

    def _make_group(self) -> Steps[bool]:
        """This group is made once, so it tells whether the others are to be made: what comes while nobody reads is new, too."""
        try:
            make = ("XGROUP", "CREATE", self.options.category, self.options.group, "$", "MKSTREAM")
            yield Ask(make, is_reading=True)
        except Fault as fault:
            if fault.code != "BUSYGROUP":
                raise
            return False
        return True

    def _discover(self) -> Steps[None]:
        category, lanes = self.options.category, self.options.lanes
        keys = yield Ask(("SMEMBERS", partitions_of(category)), is_reading=True)
        found = {stream: lane for lane, stream in streams_with(category, lanes, keys)}
        units = {stream: unit for stream, unit in self._units.items() if stream in found or stream in self._held}
        for stream, lane in found.items():
            if stream not in units:
                units[stream] = _Unit(lane)
                self._ready[lane].append(stream)
        # As a whole: another thread may be asking what is broken.
        self._units = units
        self._discover_at = time.monotonic() + DISCOVER_S

    def _ladder(self, until: float | None) -> Steps[Entry | None]:
        while not self.is_stopped:
            self._rouse()
            if self._discover_at <= time.monotonic():
                yield from self._discover()
            if (entry := (yield from self._of_lane(Lane.PRIMARY))) is not None:
                return entry
            if (yield from self._look_for_urgent()):
                continue
            if (entry := (yield from self._of_lane(Lane.BACKFILL))) is not None:
                return entry
            if until is not None and until <= time.monotonic():
                return None
            yield from self._wait(until)
        return None

    def _rouse(self) -> None:
        """What was settled, and what was away for long enough, is ready."""
        for stream in [stream for stream in self._held if not self.held.has_any(stream)]:
            self._held.discard(stream)
            self._set_ready(stream)
        while self._away and self._away[0][0] <= time.monotonic():
            self._set_ready(heapq.heappop(self._away)[1])

    def _set_ready(self, stream: str) -> None:
        unit = self._units.get(stream)
        if unit is not None and not unit.is_ready and stream not in self._held:
            unit.is_ready, unit.after = True, None
            self._ready[unit.lane].append(stream)

    def _of_lane(self, lane: Lane) -> Steps[Entry | None]:
        """What is here of a lane, or is due again, or can be taken."""
        while self.held.has_slot(lane):
            if (entry := self.held.take(lane)) is not None:
                return entry
            if (due := self.held.due(lane, time.monotonic())) is not None:
                yield from self._try_again(lane, *due)
                self._rouse()
                continue
            some = self._next_ready(lane)
            if not some:
                return None
            yield from self._take_of(lane, some)
        return None

    def _try_again(self, lane: Lane, stream: str, later: Later) -> Steps[None]:
        if later.doom is not None:
            yield from self.bury(lane, stream, later.id, later.attempts, later.doom)
            return
        try:
            yield from self._again(lane, stream, later)
        except Fault as fault:
            if fault.is_busy() and fault.code != "OOM":
                raise
            if fault.code == "NOGROUP":
                # The group is made again when something is taken.
                self.held.forget(stream, later.id)
            else:
                log.error("%s of %s waits longer for its next attempt: %s", later.id, stream, fault)

    def _next_ready(self, lane: Lane) -> list[str]:
        """Up to so many of a lane that are ready, the longest first. They are not in the ring any more."""
        at_once = 1 if self._one_by_one else CHUNK
        self._one_by_one = max(self._one_by_one - 1, 0)
        some: list[str] = []
        ring = self._ready[lane]
        while ring and len(some) < at_once:
            stream = ring.popleft()
            if stream in self._units and self._units[stream].is_ready:
                some.append(stream)
        return some

    def _take_of(self, lane: Lane, some: list[str]) -> Steps[None]:
        """Takes an entry of the first of these streams that has one for us."""
        options = self.options
        who = (options.group, options.consumer, int(options.claim_idle_s * 1000))
        try:
            told = yield evaluate(scripts.TAKE, some, *who, is_reading=True)
        except Fault as fault:
            if fault.is_busy() and fault.code != "OOM":
                raise
            if len(some) == 1:
                self._set_broken(some[0], fault)
            else:
                # A stream among them is out of bounds.
                self._one_by_one = len(some)
                self._ready[lane].extendleft(reversed(some))
            return
        for stream, (word, of) in zip(some, told, strict=False):
            unit = self._units[stream]
            unit.is_ready = False
            match text(word):
                case "entry":
                    self._held.add(stream)
                    unit.wait_s, unit.refusal = BUSY_S, None
                    yield from self._take_in(lane, stream, of)
                case "empty":
                    unit.after, unit.wait_s, unit.refusal = text(of), BUSY_S, None
                case "busy":
                    wait = min(unit.wait_s, max(int(of) / 1000, BUSY_S))
                    unit.wait_s, unit.refusal = min(unit.wait_s * 2, BUSY_MAX_S), None
                    heapq.heappush(self._away, (time.monotonic() + wait, stream))
                case _:
                    declined = Fault(text(of))
                    if declined.is_busy() and declined.code != "OOM":
                        raise declined
                    self._set_broken(stream, declined)
        self._ready[lane].extendleft(reversed(some[len(told) :]))

    def _set_broken(self, stream: str, fault: Fault) -> None:
        unit = self._units[stream]
        wait = unit.wait_s if unit.refusal is not None else BROKEN_S
        again = "%s is not read for now, the other partitions are; it is tried again in %.0f s: %s"
        log.error(again, stream, wait, fault)
        unit.is_ready, unit.after, unit.wait_s = False, None, min(wait * 2, BROKEN_MAX_S)
        unit.refusal = Refused(fault.code, f"{stream}: {fault}")
        heapq.heappush(self._away, (time.monotonic() + wait, stream))

    def _read_of(self, lanes: tuple[Lane, ...]) -> tuple[list[str], list[str]]:
        """The drained streams of these lanes, and the ids behind which nothing is."""
        drained = [(stream, unit.after) for stream, unit in self._units.items() if unit.after and unit.lane in lanes]
        return [stream for stream, _ in drained], [after for _, after in drained]

    def _look_for_urgent(self) -> Steps[bool]:
        """Whether a primary lane has news, where a backfill lane would be next."""
        now = time.monotonic()
        is_wanted = self._ready[Lane.BACKFILL] or self.held.has_next(Lane.BACKFILL, now)
        if not is_wanted or not self.held.has_slot(Lane.BACKFILL) or self._look_at > now:
            return False
        streams, after = self._read_of((Lane.PRIMARY,))
        if not streams:
            return False
        news = yield from self._news(Ask(("XREAD", "COUNT", 1, "STREAMS", *streams, *after), is_reading=True))
        if len(streams) > LOOK:
            self._look_at = time.monotonic() + 9 * (time.monotonic() - now)
        return news

    def _news(self, read: Ask) -> Steps[bool]:
        """Whether there are news."""
        try:
            answer = yield read
        except Fault as fault:
            broken = sum(unit.refusal is not None for unit in self._units.values())
            if (fault.is_busy() and fault.code != "OOM") or self._suspects == broken:
                raise
            # Trying all shows which of them it is.
            self._suspects = broken
            for stream in self._read_of(self.options.lanes.all())[0]:
                self._set_ready(stream)
            return True
        self._suspects = None
        for stream, _ in answer or []:
            self._set_ready(text(stream))
        return bool(answer)

    def _wait(self, until: float | None) -> Steps[None]:
        """For news of any stream, or for something that changes by itself."""
        options, now = self.options, time.monotonic()
        block_s = min(options.block_s, self._discover_at - now)
        if self.held.has_out():
            # An entry that is out may fail meanwhile, and is then due again so soon.
            block_s = min(block_s, max(options.retry.first, DUE_MIN_S))
        for end in (self.held.next_due(), until, self._away[0][0] if self._away else None):
            if end is not None:
                block_s = min(block_s, end - now)
        # 0 would be for ever.
        block_ms = max(math.ceil(block_s * 1000), 1)
        self._waiting = token = object()
        try:
            self._rouse()
            if any(self._ready[lane] and self.held.has_slot(lane) for lane in Lane):
                # Something was settled before others knew that we wait.
                return
            streams, after = self._read_of(options.lanes.all())
            if not streams:
                yield Pause(min(block_ms / 1000, BUSY_MAX_S / 10))
                return
            words = ("XREAD", "COUNT", 1, "BLOCK", block_ms, "STREAMS", *streams, *after)
            yield from self._news(Ask(words, is_reading=True, wait_s=block_ms / 1000))
        finally:
            if self._waiting is token:
                self._waiting = None

    def _ack_of(self, entry: Entry) -> Ask:
        return evaluate(scripts.ACK, [entry.stream], self.options.group, self.options.consumer, entry.id)

    def bury(self, lane: Lane, stream: str, entry_id: str, attempts: int, doom: Doom) -> Steps[Fate]:
        """Adds the dead letter, then acknowledges; its stream has room for the next one."""
        fate = yield from super().bury(lane, stream, entry_id, attempts, doom)
        if fate in ("dead", "gone"):
            yield from self._quit_group(stream)
        return fate

    def leave(self) -> Steps[None]:
        """Gives back what is held. A consumer is in the groups of those streams only of which it holds something."""
        yield from self._each(self.held.streams(), self._leave_stream)
