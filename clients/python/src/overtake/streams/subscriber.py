"""Streams, plainly: threads may share a subscriber."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from ..durations import Duration, seconds
from ..errors import LoginRefused, OvertakeError, TimedOut
from ..handling import End, Reject, is_fatal, join_all, log_failure, reason
from ..priority import scope_of
from .category import Lag, Work
from .connection import ERRORS, PATIENCE_S, Redis, at_first, options, said
from .entry import Entry
from .lanes import Lane, Lanes
from .letters import DeadLetter, Letters
from .partitions import reading_of
from .reading import Fate, Options, log, some_name
from .retry import Retry
from .steps import Ask, Begin, Fault, Lost, Pause, Steps, T

__all__ = ["Category", "DeadLetters", "StreamHandling", "Subscriber"]

#: So long a read that is under way is left alone when a subscriber stops, seconds.
WAKE_S = 0.01
#: What is held is spoken of again so soon where the server does not hear it, seconds.
SOON_S = 1.0


class _Server:
    """One who asks what steps say."""

    def __init__(self, url: str, given: dict[str, Any]) -> None:
        self._url = url
        self._options = options(given)
        self._client = self._connect(PATIENCE_S)
        self._reading: Redis | None = None
        self.is_stopped = threading.Event()

    def _connect(self, timeout_s: float, **more: Any) -> Redis:
        client = Redis.from_url(self._url, **{**self._options, "socket_timeout": timeout_s, **more})
        client.response_callbacks.clear()
        return client

    def drive(self, steps: Steps[T], block_s: float = 0.0) -> T:
        """Asks, step by step."""
        answer: Any = None
        error: OvertakeError | None = None
        while True:
            try:
                step = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            answer, error = None, None
            try:
                answer = self._do(step, block_s)
            except (Fault, Lost, LoginRefused) as failed:
                error = failed

    def _do(self, step: Ask | Pause | Begin, block_s: float) -> Any:
        if isinstance(step, Pause):
            return self.is_stopped.wait(step.seconds)
        try:
            if isinstance(step, Begin):
                self._close_reading()
                self._reading = self._connect(block_s + PATIENCE_S, single_connection_client=True)
                return None
            client = self._reading if step.is_reading else self._client
            if client is None:
                raise Lost("there is no connection")
            return client.execute_command(*step.words)  # type: ignore[no-untyped-call]
        except ERRORS as error:
            raise said(error) from None

    def _close_reading(self) -> None:
        if self._reading is not None:
            self._reading.close()
            self._reading.connection_pool.disconnect()
            self._reading = None

    def close(self) -> None:
        """Closes all connections."""
        self._close_reading()
        self._client.close()
        self._client.connection_pool.disconnect()


class Subscriber:
    """A consumer of a group, which reads the urgent lane first. `with` stops it at the end.

    A connection that is lost comes again by itself. What it holds nobody takes over as long as this process lives.
    """

    def __init__(
        self,
        url: str,
        category: str,
        group: str,
        *,
        consumer: str | None = None,
        lanes: Lanes | None = None,
        batch: int = 10,
        batch_backfill: int = 1,
        block_s: Duration = 1.0,
        retry: Retry | None = None,
        claim_idle_s: Duration = 60.0,
        start: str = "0",
        login_retry: Duration | None = 30.0,
        partitions: bool = False,
        **connection: Any,
    ) -> None:
        """Connects, and makes the group where it is not there. The primary lane must be readable; why the other one is not says `broken`.

        `consumer` is our name in the group: who comes back under it goes on at once with what it left. Without `lanes` there is one. At
        most `batch` entries of the primary lane are fetched together, and `batch_backfill` of the other. New entries are waited for at
        most `block_s` at a time; an arrival ends that. What another consumer has not settled for `claim_idle_s` is taken over. A group
        that is made here begins at `start`: `0`, the oldest entry, or `$`, what is new. What else is said goes to redis-py.

        With `partitions` the category is parted by keys: the streams of each partition are read, too, and the whole group has one entry of
        each of them at a time, so `batch` and `batch_backfill` do not matter.

        Durations are numbers of seconds, text with a unit, such as `"250ms"`, or a `timedelta`. A login that the server refuses although
        it accepted it before is tried again after `login_retry`; None: the refusal is raised.
        """
        own = Options(
            category,
            group,
            consumer or some_name(),
            lanes or Lanes(enabled=False),
            batch,
            batch_backfill,
            seconds(block_s, "block_s"),
            retry or Retry(),
            seconds(claim_idle_s, "claim_idle_s"),
            start,
            seconds(login_retry, "login_retry"),
            partitions,
        )
        self._reading = reading_of(own)
        self._server = _Server(url, connection)
        self._lock = threading.Lock()
        self._is_over = False
        #: Held by the thread that wakes the read, or closes the connections.
        self._waking = threading.Lock()
        self._is_closed = False
        try:
            self._drive(self._reading.begin())
            self._drive(self._reading.look_for_unread())
        except OvertakeError as error:
            self._server.close()
            raise at_first(error) from None
        self._keeper = threading.Thread(target=self._keep, name=f"overtake keeper of {group}", daemon=True)
        self._keeper.start()

    @property
    def category(self) -> str:
        """The category it reads."""
        return self._reading.options.category

    @property
    def broken(self) -> OvertakeError | None:
        """Why one of the lanes is not read for now, if that is so. It is tried again, and each failure is logged at ERROR."""
        return self._reading.broken

    @property
    def lanes(self) -> Lanes:
        """The lanes it reads."""
        return self._reading.options.lanes

    def unread(self) -> str | None:
        """What the category has and this subscriber never reads, in a sentence: a backfill lane, or partitions.

        None where it reads every stream that has entries. A subscriber that begins logs it as a warning.
        """
        return self._told(self._reading.unread())

    def next(self, timeout: Duration | None = None) -> Entry | None:
        """The next entry; None once it is stopped. After `timeout` (a number is in seconds) without any it raises `TimedOut`."""
        timeout = seconds(timeout, "timeout")
        until = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            entry = self._drive(self._reading.next(until))
        if entry is None and not self._reading.is_stopped:
            raise TimedOut(f"nothing came into {self._reading.options.category} within {timeout} s")
        return entry

    def __iter__(self) -> Iterator[Entry]:
        while (entry := self.next()) is not None:
            yield entry

    def ack(self, entry: Entry) -> bool:
        """It is done. Whether it was ours to settle."""
        return self._told(self._reading.ack(entry))

    def fail(self, entry: Entry, why: str) -> Fate:
        """It failed: it is tried again in its own lane (`again`), and after the last attempt it is a dead letter there (`dead`).

        `kept`: the dead letters cannot be written; it stays, and goes there when they can. `gone`: it was settled before, or is another's.
        """
        return self._told(self._reading.fail(entry, why))

    def reject(self, entry: Entry, why: str) -> Fate:
        """It will never be done: it is a dead letter of its lane at once. What it answers is as in `fail`."""
        return self._told(self._reading.reject(entry, why))

    def handle(
        self, handler: Callable[[Entry], Any], *, concurrency: int = 1, primary_slots: int = 0
    ) -> StreamHandling:
        """Runs a function for each entry, in a scope of the entry's priority.

        What it returns from is acked; `Reject` makes a dead letter; any other exception is a failure, and it is tried again. Of the
        `concurrency` threads the backfill lane never uses `primary_slots`, so an urgent entry finds one free while bulk work is slow. That
        needs two lanes and more threads than are kept; else `ValueError`.
        """
        self._reading.keep_slots(max(concurrency, 1), primary_slots)
        return StreamHandling(self, handler, concurrency)

    def stop(self) -> None:
        """Gives back what is held and not handed over; a consumer that holds nothing leaves the group. Closes the connections."""
        self.quit()
        self.finish()

    def finish(self) -> None:
        """The end of `stop`, after `quit`. What was handed over meanwhile is settled, if it is to be."""
        with self._lock:
            if self._is_over:
                return
            self._is_over = True
            self._keeper.join()
            try:
                self._server.drive(self._reading.leave())
            except OvertakeError as error:
                log.warning("what is held stays pending, and is taken over in time: %s", error)
            with self._waking:
                self._server.close()
                self._is_closed = True

    def quit(self) -> None:
        """Takes nothing more; whoever waits for an entry hears that there is none."""
        self._reading.is_stopped = True
        self._server.is_stopped.set()
        while not self._lock.acquire(timeout=WAKE_S):
            # Another thread may be closing the connections already.
            with self._waking:
                if self._is_closed:
                    return
                try:
                    self._server.drive(_once(Ask(("CLIENT", "UNBLOCK", self._reading.reads_as))))
                except OvertakeError:
                    # Where nobody answers the read ends, too.
                    continue
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _drive(self, steps: Steps[T]) -> T:
        return self._server.drive(steps, self._reading.options.block_s)

    def _told(self, steps: Steps[T]) -> T:
        try:
            return self._server.drive(steps)
        except (Fault, Lost) as error:
            raise at_first(error) from None

    def _keep(self) -> None:
        turn = self._reading.options.claim_idle_s / 3
        wait, is_told = turn, False
        while not self._server.is_stopped.wait(wait):
            try:
                self._server.drive(self._reading.keep())
                wait, is_told = turn, False
            except OvertakeError as error:
                if not is_told:
                    log.warning("the server does not hear what is being worked on: %s", error)
                wait, is_told = min(turn, SOON_S), True


def _once(step: Ask) -> Steps[Any]:
    return (yield step)


class StreamHandling:
    """A handler at work, until it is stopped or ends by itself. Its subscriber ends with it.

    `with` stops it at the end, and raises why it ended if it did so by itself: the server does not let it read, or a handler raised
    `SystemExit` or `KeyboardInterrupt`.
    """

    def __init__(self, subscriber: Subscriber, handler: Callable[[Entry], Any], concurrency: int) -> None:
        self._subscriber = subscriber
        self._handler = handler
        self._end = End(subscriber.category)
        self._lock = threading.Lock()
        self._at_work = max(concurrency, 1)
        self._threads = [
            threading.Thread(target=self._work, name=f"overtake stream {number}", daemon=True)
            for number in range(self._at_work)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Takes nothing more, waits until what is in hand is finished, and stops the subscriber.

        A handler that stops itself does not wait.
        """
        if threading.current_thread() in self._threads:
            threading.Thread(target=self.stop, name="overtake stream end").start()
            return
        self._subscriber.quit()
        for thread in self._threads:
            thread.join()
        self._subscriber.finish()

    def wait(self, timeout: Duration | None = None) -> None:
        """Waits until somebody stops it, or for so long; a number is in seconds. If it ended by itself, the reason is raised."""
        join_all(self._threads, seconds(timeout, "timeout"))
        self._end.check()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._end.leave(error, self._subscriber.broken)

    def _work(self) -> None:
        try:
            for entry in self._subscriber:
                self._handle(entry)
        except BaseException as error:
            # Also what somebody throws into this thread: the others end, too.
            self._end.note(error)
            self._subscriber.quit()
        finally:
            with self._lock:
                self._at_work -= 1
                is_last = self._at_work == 0
            if is_last:
                # A subscriber that goes on keeps its entries from others as long as this process lives.
                self._subscriber.stop()

    def _handle(self, entry: Entry) -> None:
        failed: BaseException | None = None
        try:
            with scope_of(entry.priority_in(self._subscriber.lanes)):
                self._handler(entry)
        except BaseException as error:
            failed = error
        try:
            if failed is None:
                self._subscriber.ack(entry)
            elif isinstance(failed, Reject):
                self._subscriber.reject(entry, reason(failed))
            else:
                if not is_fatal(failed):
                    log_failure(f"the handler of {entry.id} of {entry.stream} failed", failed)
                self._subscriber.fail(entry, reason(failed))
        except OvertakeError as error:
            log.error("%s of %s was handled and is not settled; it comes again: %s", entry.id, entry.stream, error)
        if failed is not None and is_fatal(failed):
            raise failed


class DeadLetters:
    """The dead letters of a category. `with` closes the connection at the end."""

    def __init__(self, url: str, category: str, *, lanes: Lanes | None = None, **connection: Any) -> None:
        """Connects when it is asked something. Without `lanes` there is one."""
        self._letters = Letters(category, lanes or Lanes(enabled=False))
        self._server = _Server(url, connection)

    def list(self, limit: int = 100) -> list[DeadLetter]:
        """The newest of all lanes, so many at most."""
        return self._ask(self._letters.list(limit))

    def inspect(self, letter_id: str, lane: Lane | None = None) -> DeadLetter | None:
        """The letter of an id; the lane need be said only where both have one of that id."""
        return self._ask(self._letters.inspect(letter_id, lane))

    def replay(self, letter_id: str, lane: Lane | None = None) -> bool:
        """Puts a letter back at the end of the stream it came from, as what it was. Whether it was there."""
        return self._ask(self._letters.replay(letter_id, lane))

    def replay_all(self, lane: Lane | None = None) -> int:
        """Puts back all there are, or those of one lane, the oldest first; those that come meanwhile stay. How many."""
        return self._ask(self._letters.replay_all(lane))

    def remove(self, letter_id: str, lane: Lane | None = None) -> bool:
        """Deletes a letter. Whether it was there."""
        return self._ask(self._letters.remove(letter_id, lane))

    def purge(self, lane: Lane | None = None) -> int:
        """Deletes all there are, or those of one lane. How many."""
        return self._ask(self._letters.purge(lane))

    def close(self) -> None:
        """Closes the connection."""
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, steps: Steps[T]) -> T:
        try:
            return self._server.drive(self._letters.told(steps))
        except Lost as error:
            raise at_first(error) from None


class Category:
    """A category of streams, for those who write into it and who see to it. `with` closes the connection at the end."""

    def __init__(
        self, url: str, category: str, *, lanes: Lanes | None = None, partitions: bool = False, **connection: Any
    ) -> None:
        """Connects when it is asked something. Without `lanes` there is one. With `partitions` a key has streams of its own."""
        self._work = Work(category, lanes or Lanes(enabled=False), partitions)
        self._server = _Server(url, connection)

    def publish(
        self,
        data: Any,
        *,
        type: str | None = None,  # noqa: A002 - that is what it is called everywhere
        id: str | None = None,  # noqa: A002 - as `type`
        metadata: Mapping[str, Any] | None = None,
        priority: int | None = None,
        key: str | None = None,
    ) -> str:
        """Adds an entry about `data` (JSON) to the lane of its priority, and returns the id that the server gave it.

        It has the priority it says, else the scope's, else `Priority.NORMAL`; handlers find it in `metadata["domain"]["priority"]`, and its
        `type` and `id` (drawn, where none is said) in `metadata["headers"]`. `ConnectionLost`: nobody knows whether it was added.
        """
        return self._ask(self._work.publish(data, type, id, metadata, priority, key))

    def groups(self) -> list[str]:
        """The groups that any of its streams has."""
        return self._ask(self._work.groups())

    def lag(self, group: str) -> list[Lag]:
        """How far a group is in each lane, of all partitions together. One that is not there yet has everything before it."""
        return self._ask(self._work.lag(group))

    def trim(self) -> int:
        """Deletes the entries that every group has settled, up to the first that any group has not read or not settled. How many.

        A stream stays whole where one of the category's groups is missing. Without any group nothing is deleted. A group that nobody
        reads any more keeps everything: `XGROUP DESTROY` it. A group that is made later does not get what is gone. Dead letters stay.
        """
        return self._ask(self._work.trim())

    def close(self) -> None:
        """Closes the connection."""
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, steps: Steps[T]) -> T:
        try:
            return self._server.drive(self._work.told(steps))
        except Lost as error:
            raise at_first(error) from None
