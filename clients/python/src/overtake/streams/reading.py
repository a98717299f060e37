"""A consumer of a group, which reads the urgent lane first.

Of each lane, the primary first: what this consumer left, when it is due again; what others have left; what is new. For the primary lane
nothing is waited; where it has nothing and the backfill lane neither, one read waits for both of them, and whatever comes ends it.

An entry that failed stays pending under our name while it waits, so nothing is lost with us, and its attempts are those that the server
counts. It does not hold up others.
"""

from __future__ import annotations

import logging
import math
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from ..backoff import Refusals, waits
from ..errors import LoginRefused, Refused
from . import scripts
from .category import unread
from .entry import Entry, Fields, Unreadable, read
from .held import Doom, Held, Later
from .lanes import Lane, Lanes, dead_letters_of
from .letters import letter
from .retry import Retry
from .steps import Ask, Begin, Fault, Lost, Pause, Steps, T, evaluate, text

log = logging.getLogger("overtake")

#: What was pending, and what is held, is spoken of in pages of so many.
PENDING_PAGE, KEEP_PAGE = 1_000, 200
#: An entry that was handed over so often beyond its attempts, and that nobody has settled, ends whoever has it.
UNSETTLED_MAX = 10
#: The longest wait between two looks for what others left, seconds.
CLAIM_S = 30.0
#: The shortest wait for what may fail meanwhile, seconds.
DUE_MIN_S = 0.01
#: Between attempts to wake a read that waits, seconds.
WAKE_S = 0.01
#: What is settled is told the server for so long at least, until it hears, seconds.
SETTLE_MIN_S = 5.0

#: A lane that the server does not let us read is tried again after so long at first, twice as long each time, and so
#: long at most, seconds.
BROKEN_S, BROKEN_MAX_S = 1.0, 30.0

Fate = Literal["again", "dead", "kept", "gone"]


def some_name() -> str:
    """A name that no other consumer has."""
    return f"overtake-{os.getpid()}-{secrets.token_hex(4)}"


@dataclass(frozen=True)
class Options:
    """What is read, and how."""

    category: str
    group: str
    consumer: str = field(default_factory=some_name)
    lanes: Lanes = field(default_factory=lambda: Lanes(enabled=False))
    batch: int = 10
    batch_backfill: int = 1
    block_s: float = 1.0
    retry: Retry = field(default_factory=Retry)
    claim_idle_s: float = 60.0
    start: str = "0"
    login_retry_s: float | None = 30.0
    partitions: bool = False

    def __post_init__(self) -> None:
        for what in ("category", "group", "consumer"):
            if not getattr(self, what).strip():
                raise ValueError(f"`{what}` must be a name")
        if self.batch < 1 or self.batch_backfill < 1:
            raise ValueError("`batch` and `batch_backfill` must be at least 1")
        if not 0.001 <= self.block_s <= 3600:
            raise ValueError("`block_s` must be between 0.001 and 3600 seconds")
        if not (math.isfinite(self.claim_idle_s) and self.claim_idle_s >= 0.01):
            raise ValueError(
                "`claim_idle_s` must be at least 0.01: else consumers take from each other what they work on"
            )
        if self.start not in ("0", "$"):
            raise ValueError("`start` is `0`, for the oldest entry, or `$`, for what is added from now on")


@dataclass(frozen=True)
class _Broken:
    """A lane that is not read for now."""

    at: float
    """When it is tried again."""
    wait_s: float
    """The wait after the next failure."""
    refusal: Refused | None = None
    """The fault that the lane was broken by; None where only the group is to be made again, at once."""
    passes: bool = True
    """The fault passes by itself."""


class Reading:
    """What there is to be asked so that an entry comes, and so that one is settled."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.held = Held()
        self.is_stopped = False
        self.reads_as = 0
        """What the server calls the connection that reads; 0 where it does not say."""
        self._is_begun = False
        self._was_begun = False
        self._refusals = Refusals("the server of the streams", options.login_retry_s)
        #: The lanes that the server does not let us read.
        self._broken: dict[Lane, _Broken] = {}
        self._waiting: object | None = None
        """The read that waits, where what is settled must end it."""
        #: When to look again for what others left.
        self._claim_at = dict.fromkeys(options.lanes.all(), 0.0)

    @property
    def broken(self) -> Refused | None:
        """Why a lane is not read for now."""
        lanes = (self._broken.get(lane) for lane in self.options.lanes.all())
        return next((broken.refusal for broken in lanes if broken and broken.refusal), None)

    def stream(self, lane: Lane) -> str:
        """The stream that a lane is."""
        return self.options.lanes.stream(self.options.category, lane)

    def begin(self) -> Steps[None]:
        """A connection, the groups, and what is pending under our name. The first time the primary lane must be readable."""
        yield Begin()
        try:
            self.reads_as = int((yield Ask(("CLIENT", "ID"), is_reading=True)))
        except Fault:
            self.reads_as = 0
        for lane in self.options.lanes.all():
            if self._was_begun or lane is Lane.BACKFILL:
                yield from self._unless_broken(lane, self._begin_lane(lane), None)
            else:
                yield from self._begin_lane(lane)
        self._is_begun = self._was_begun = True
        self._refusals.end()

    def _begin_lane(self, lane: Lane) -> Steps[None]:
        make = ("XGROUP", "CREATE", self.stream(lane), self.options.group, self.options.start, "MKSTREAM")
        try:
            yield Ask(make, is_reading=True)
        except Fault as fault:
            if fault.code != "BUSYGROUP":
                raise
        yield from self._recall(lane)
        broken = self._broken.pop(lane, None)
        if broken is not None and broken.refusal is not None:
            log.info("%s can be read again", self.stream(lane))

    def _unless_broken(self, lane: Lane, steps: Steps[T], otherwise: T) -> Steps[T]:
        """Runs steps of one lane. When the lane fails, the other one goes on; when both have failed, that is raised."""
        try:
            return (yield from steps)
        except Fault as fault:
            if _is_of_server(fault):
                raise
            self._break(lane, fault)
            return otherwise

    def _break(self, lane: Lane, fault: Fault) -> None:
        """Logs that a lane cannot be read, and tries it again in a while. When no lane can be read, that is raised."""
        before, now = self._broken.get(lane), time.monotonic()
        if before is None and _is_gone(fault):
            self._broken[lane] = _Broken(now, BROKEN_S)
            return
        wait_s = before.wait_s if before else BROKEN_S
        refusal = Refused(fault.code, f"{self.stream(lane)}: {fault}")
        self._broken[lane] = _Broken(now + wait_s, min(wait_s * 2, BROKEN_MAX_S), refusal, _passes(fault))
        failed = [broken for broken in self._broken.values() if broken.refusal is not None]
        if len(failed) == len(self.options.lanes.all()):
            self._broken.clear()
            self._is_begun = False
            if any(broken.passes for broken in failed):
                raise Lost(str(refusal)) from None
            raise refusal from None
        again = "%s is not read for now, the other lane is; it is tried again in %.0f s: %s"
        log.error(again, self.stream(lane), wait_s, fault)

    def unread(self) -> Steps[str | None]:
        """What the category has and this reader never reads."""
        return unread(self.options.category, self.options.lanes, self.options.partitions)

    def look_for_unread(self) -> Steps[None]:
        """Warns of what is never read. Where the server does not say, nobody is told."""
        try:
            sentence = yield from self.unread()
        except (Fault, Lost, LoginRefused):
            return
        if sentence is not None:
            log.warning("%s: %s", self.options.category, sentence)

    def next(self, until: float | None = None) -> Steps[Entry | None]:
        """The next entry; None once it is stopped, or that instant is there."""
        backoff, is_told = waits(), False
        while not self.is_stopped:
            try:
                if not self._is_begun:
                    yield from self.begin()
                return (yield from self._ladder(until))
            except LoginRefused as refusal:
                self._is_begun = False
                slowly = self._refusals.wait(refusal) if self._was_begun else None
                if slowly is None:
                    raise
                wait = slowly
            except (Fault, Lost) as interruption:
                self._is_begun = False
                if isinstance(interruption, Fault) and not _passes(interruption):
                    raise Refused(interruption.code, f"{self.options.category}: {interruption}") from None
                if not is_told:
                    log.warning("reading streams is interrupted: %s", interruption)
                    is_told = True
                wait = next(backoff)
            if until is not None:
                wait = min(wait, until - time.monotonic())
                if wait <= 0:
                    return None
            yield Pause(wait)
        return None

    def _ladder(self, until: float | None) -> Steps[Entry | None]:
        while not self.is_stopped:
            for lane in [lane for lane, broken in self._broken.items() if broken.at <= time.monotonic()]:
                yield from self._unless_broken(lane, self._begin_lane(lane), None)
            if (entry := (yield from self._of_lane(Lane.PRIMARY))) is not None:
                return entry
            # Entries that dead consumers hold are older than new ones.
            if (yield from self._look_for_left(Lane.PRIMARY)):
                continue
            if (yield from self._unless_broken(Lane.PRIMARY, self._read_primary(), False)):
                continue
            if (entry := (yield from self._of_lane(Lane.BACKFILL))) is not None:
                return entry
            if (yield from self._look_for_left(Lane.BACKFILL)):
                continue
            if until is not None and until <= time.monotonic():
                return None
            yield from self._wait(until)
        return None

    def _of_lane(self, lane: Lane) -> Steps[Entry | None]:
        """What is here of a lane, or is due again."""
        if lane in self._broken or not self.held.has_slot(lane):
            return None
        return (yield from self._unless_broken(lane, self._of_sound_lane(lane), None))

    def _of_sound_lane(self, lane: Lane) -> Steps[Entry | None]:
        while True:
            if (entry := self.held.take(lane)) is not None:
                return entry
            due = self.held.due(lane, time.monotonic())
            if due is None:
                return None
            stream, later = due
            if later.doom is not None:
                yield from self.bury(lane, stream, later.id, later.attempts, later.doom)
            else:
                yield from self._again(lane, stream, later)

    def _again(self, lane: Lane, stream: str, later: Later) -> Steps[None]:
        options = self.options
        try:
            answer = yield evaluate(scripts.AGAIN, [stream], options.group, options.consumer, later.id, is_reading=True)
        except (Fault, Lost, LoginRefused):
            self.postpone(lane, stream, later)
            raise
        if answer is not None:
            yield from self._take_in(lane, stream, answer)

    def _read_primary(self) -> Steps[bool]:
        """Whether there was something."""
        if Lane.PRIMARY in self._broken or not self._has_room(Lane.PRIMARY):
            return False
        answer = yield Ask(self._read_new([Lane.PRIMARY], self.options.batch, None), is_reading=True)
        return (yield from self._keep_new(answer))

    def _has_room(self, lane: Lane) -> bool:
        return self.held.has_room(self.stream(lane)) and self.held.has_slot(lane)

    def _look_for_left(self, lane: Lane) -> Steps[bool]:
        """Takes over a batch of what others left in a lane, when it is time to look. Whether there was something."""
        is_wanted = lane not in self._broken and self._has_room(lane)
        if not is_wanted or self._claim_at.get(lane, math.inf) > time.monotonic():
            return False
        return (yield from self._unless_broken(lane, self._claim_left(lane), False))

    def _claim_left(self, lane: Lane) -> Steps[bool]:
        options, asked_at = self.options, time.monotonic()
        batch = options.batch if lane is Lane.PRIMARY else options.batch_backfill
        words = (options.group, options.consumer, int(options.claim_idle_s * 1000), batch)
        wait_ms, claimed = yield evaluate(scripts.CLAIM, [self.stream(lane)], *words, is_reading=True)
        self._claim_at[lane] = asked_at + min(wait_ms / 1000, CLAIM_S)
        for each in claimed:
            yield from self._take_in(lane, self.stream(lane), each)
        return bool(claimed)

    def _wait(self, until: float | None) -> Steps[None]:
        """For something new, or something that is due."""
        options, now = self.options, time.monotonic()
        # Before it is known whether the backfill lane has a slot: who frees one later ends the read.
        self._waiting = token = object()
        lanes = [lane for lane in options.lanes.all() if self._has_room(lane) and lane not in self._broken]
        if not lanes or Lane.BACKFILL in lanes:
            self._waiting = None
        block_s = min([options.block_s, *(self._claim_at[lane] - now for lane in lanes)])
        if self.held.has_out():
            # What is out may fail meanwhile, and is then due again so soon.
            block_s = min(block_s, max(options.retry.first, DUE_MIN_S))
        for end in (self.held.next_due(), until, *(broken.at for broken in self._broken.values())):
            if end is not None:
                block_s = min(block_s, end - now)
        # 0 would be for ever.
        block_ms = max(math.ceil(block_s * 1000), 1)
        if not lanes:
            yield Pause(block_ms / 1000)
            return
        batch = options.batch_backfill if Lane.BACKFILL in lanes else options.batch
        words = self._read_new(lanes, batch, block_ms)
        try:
            answer = yield Ask(words, is_reading=True, wait_s=block_ms / 1000)
        except Fault as fault:
            if _is_of_server(fault):
                raise
            yield from self._find_broken(lanes, fault)
        else:
            yield from self._keep_new(answer)
        finally:
            if self._waiting is token:
                self._waiting = None

    def _wake(self) -> Steps[None]:
        """What was settled lets more be read, which the read that waits does not know."""
        waiting = self._waiting
        while waiting is not None and self._waiting is waiting:
            if int((yield Ask(("CLIENT", "UNBLOCK", self.reads_as)))) == 1:
                return
            yield Pause(WAKE_S)

    def _find_broken(self, lanes: list[Lane], fault: Fault) -> Steps[None]:
        """Finds the lane for which one read of several lanes was declined."""
        before = len(self._broken)
        for lane in lanes:
            yield from self._unless_broken(lane, self._read_at_once(lane), None)
        # A group that was gone may have been made again by another consumer.
        if len(self._broken) == before and not _is_gone(fault):
            raise fault

    def _read_at_once(self, lane: Lane) -> Steps[None]:
        batch = self.options.batch if lane is Lane.PRIMARY else self.options.batch_backfill
        answer = yield Ask(self._read_new([lane], batch, None), is_reading=True)
        yield from self._keep_new(answer)

    def _read_new(self, lanes: list[Lane], batch: int, block_ms: int | None) -> tuple[Any, ...]:
        wait = () if block_ms is None else ("BLOCK", block_ms)
        streams = [self.stream(lane) for lane in lanes]
        group = ("GROUP", self.options.group, self.options.consumer, "COUNT", batch)
        return ("XREADGROUP", *group, *wait, "STREAMS", *streams, *(">" for _ in streams))

    def _keep_new(self, answer: Any) -> Steps[bool]:
        has_some = False
        for stream, entries in answer or []:
            lane = Lane.PRIMARY if text(stream) == self.options.category else Lane.BACKFILL
            for entry_id, fields in entries:
                if fields is not None:
                    has_some = True
                    yield from self._take_in(lane, text(stream), [entry_id, fields, 1])
        return has_some

    def _take_in(self, lane: Lane, stream: str, counted: Any) -> Steps[None]:
        """What can be read is ready; the rest is laid aside at once."""
        entry_id, words, attempt = text(counted[0]), counted[1], int(counted[2])
        if self.held.has(stream, entry_id):
            return
        fields: Fields = tuple(zip(words[::2], words[1::2], strict=True))
        if attempt > self.options.retry.attempts + UNSETTLED_MAX:
            why = f"it was handed over {attempt - 1} times and never settled: see what ends its consumers"
        else:
            try:
                self.held.fetch(read(lane, stream, entry_id, fields, attempt))
                return
            except Unreadable as unreadable:
                why = f"it cannot be read: {unreadable}"
        yield from self.bury(lane, stream, entry_id, attempt, Doom(why, fields))

    def _recall(self, lane: Lane) -> Steps[None]:
        """What is pending under our name and not known here: ours before we ended, or on its way when the connection was lost."""
        start = "-"
        while True:
            group = (self.stream(lane), self.options.group)
            words = ("XPENDING", *group, start, "+", PENDING_PAGE, self.options.consumer)
            page = yield Ask(words, is_reading=True)
            for entry_id, _, idle_ms, attempts in page:
                start = f"({text(entry_id)}"
                if not self.held.has(self.stream(lane), text(entry_id)):
                    wait = max(self.options.retry.wait_after(attempts) - idle_ms / 1000, 0)
                    due = time.monotonic() + wait
                    self.held.postpone(lane, self.stream(lane), due, Later(text(entry_id), attempts))
            if len(page) < PENDING_PAGE:
                return

    def postpone(self, lane: Lane, stream: str, later: Later) -> None:
        """It waits as long as so many attempts mean."""
        self.held.postpone(lane, stream, time.monotonic() + self.options.retry.wait_after(later.attempts), later)

    # What is settled.

    def keep_slots(self, slots: int, primary: int) -> None:
        """Of so many slots in which entries are handled the backfill lane never uses `primary`."""
        if primary < 0:
            raise ValueError("`primary_slots` must be at least 0")
        if primary and len(self.options.lanes.all()) < 2:
            raise ValueError("`primary_slots` needs two lanes: set `lanes` as the writer has them, or leave it at 0")
        if primary >= slots:
            raise ValueError(
                f"`primary_slots` is {primary} of {slots} slots, so the backfill lane would never be read: "
                "keep fewer, or have more slots"
            )
        self.held.limit_backfill(slots - primary if primary else None)

    def _end_work(self, entry: Entry, settling: Steps[T]) -> Steps[T]:
        try:
            settled = yield from settling
        finally:
            is_free = self.held.end_work(entry)
        if is_free or self.options.partitions:
            yield from self._wake()
        return settled

    def ack(self, entry: Entry) -> Steps[bool]:
        """Acknowledges an entry, and returns whether it was ours to settle. When the server does not hear it, the entry comes again."""
        return self._end_work(entry, self._ack(entry))

    def _ack(self, entry: Entry) -> Steps[bool]:
        try:
            answer = yield from self._insist(self._ack_of(entry))
        except (Fault, Lost, LoginRefused):
            if self.held.is_out(entry):
                self.postpone(entry.lane, entry.stream, Later(entry.id, entry.attempt))
            raise
        self.held.forget(entry.stream, entry.id)
        return int(answer) == 1

    def _ack_of(self, entry: Entry) -> Ask:
        return Ask(("XACK", entry.stream, self.options.group, entry.id))

    def fail(self, entry: Entry, why: str) -> Steps[Fate]:
        """It failed: it is tried again in its own lane, and after the last attempt it is a dead letter there."""
        return self._end_work(entry, self._fail(entry, why))

    def _fail(self, entry: Entry, why: str) -> Steps[Fate]:
        if self.options.retry.is_over(entry.attempt):
            return (yield from self._reject(entry, why))
        if not self.held.is_out(entry):
            return "gone"
        self.postpone(entry.lane, entry.stream, Later(entry.id, entry.attempt))
        return "again"

    def reject(self, entry: Entry, why: str) -> Steps[Fate]:
        """It will never be done: it is a dead letter of its lane at once."""
        return self._end_work(entry, self._reject(entry, why))

    def _reject(self, entry: Entry, why: str) -> Steps[Fate]:
        if not self.held.is_out(entry):
            return "gone"
        return (yield from self.bury(entry.lane, entry.stream, entry.id, entry.attempt, Doom(why, entry.fields)))

    def bury(self, lane: Lane, stream: str, entry_id: str, attempts: int, doom: Doom) -> Steps[Fate]:
        """Adds the dead letter, then acknowledges; where it cannot be added the entry waits."""
        options = self.options
        fields = letter(stream, entry_id, options.group, options.consumer, attempts, doom.why, doom.fields)
        words = [word for pair in fields for word in pair]
        dead = dead_letters_of(stream)
        bury = evaluate(scripts.BURY, [stream, dead], options.group, options.consumer, entry_id, *words)
        try:
            # What is asked again finds that it is done.
            answer = yield from self._insist(bury)
        except Fault as fault:
            log.warning("%s of %s stays where it is: %s cannot be written: %s", entry_id, stream, dead, fault)
            self.postpone(lane, stream, Later(entry_id, attempts, doom))
            return "kept"
        except (Lost, LoginRefused):
            self.postpone(lane, stream, Later(entry_id, attempts, doom))
            raise
        self.held.forget(stream, entry_id)
        return "dead" if int(answer) == 1 else "gone"

    def _insist(self, step: Ask) -> Steps[Any]:
        """Again and again until the server hears it, or others may have it."""
        until, backoff = time.monotonic() + max(self.options.claim_idle_s, SETTLE_MIN_S), waits()
        while True:
            try:
                return (yield step)
            except (Lost, LoginRefused):
                if time.monotonic() >= until:
                    raise
            yield Pause(next(backoff))

    def keep(self) -> Steps[None]:
        """Says of what is held that it is being worked on, so that nobody takes it over."""
        yield from self._each(self.held.streams(), self._keep_stream)

    def _each(self, streams: list[str], steps_of: Callable[[str], Steps[None]]) -> Steps[None]:
        """The same for each stream; what the server has against one of them is raised when all were asked."""
        failed: Fault | None = None
        for stream in streams:
            try:
                yield from steps_of(stream)
            except Fault as fault:
                failed = failed or fault
        if failed is not None:
            raise failed

    def _keep_stream(self, stream: str) -> Steps[None]:
        options, ids = self.options, self.held.ids(stream)
        for at in range(0, len(ids), KEEP_PAGE):
            some = ids[at : at + KEEP_PAGE]
            gone = yield evaluate(scripts.KEEP, [stream], options.group, options.consumer, *some)
            for entry_id in gone:
                self.held.forget(stream, text(entry_id))

    def leave(self) -> Steps[None]:
        """Gives back what is held and not handed over; who holds nothing leaves the group."""
        yield from self._each([self.stream(lane) for lane in self.options.lanes.all()], self._leave_stream)

    def _leave_stream(self, stream: str) -> Steps[None]:
        options = self.options
        given = self.held.give_up(stream, time.monotonic())
        who = (options.group, options.consumer)
        for at in range(0, len(given), KEEP_PAGE):
            words: list[Any] = []
            for entry_id, attempts, until_s in given[at : at + KEEP_PAGE]:
                words += [entry_id, attempts, int(max(options.claim_idle_s - until_s, 0) * 1000)]
            yield evaluate(scripts.HAND_BACK, [stream], *who, *words)
        yield from self._quit_group(stream)

    def _quit_group(self, stream: str) -> Steps[None]:
        try:
            yield evaluate(scripts.LEAVE, [stream], self.options.group, self.options.consumer)
        except Fault as fault:
            log.debug("a consumer cannot leave its group: %s", fault)


def _is_gone(fault: Fault) -> bool:
    """Whether the stream of a lane or its group is gone. A read that waits ends with the second code then."""
    return fault.code in ("NOGROUP", "UNBLOCKED")


def _is_of_server(fault: Fault) -> bool:
    """Whether no lane can be read now. Without memory only what needs some is declined, such as making one lane's stream again."""
    return fault.is_busy() and fault.code != "OOM"


def _passes(fault: Fault) -> bool:
    """Whether what the server says against a read passes by itself, or with a group that is made again."""
    return fault.is_busy() or _is_gone(fault)
