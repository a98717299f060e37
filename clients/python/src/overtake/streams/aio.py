"""Streams with asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Self

from ..durations import Duration, seconds
from ..errors import Closed, LoginRefused, OvertakeError
from ..handling import End, Reject, is_fatal, log_failure, reason
from ..priority import scope_of
from .category import Lag, Work
from .connection import ERRORS, PATIENCE_S, at_first, options, said
from .entry import Entry
from .lanes import Lane, Lanes
from .letters import DeadLetter, Letters
from .partitions import reading_of
from .reading import Fate, Options, log, some_name
from .retry import Retry
from .steps import Ask, Begin, Fault, Lost, Pause, Steps, T
from .subscriber import SOON_S, WAKE_S

# After `connection`, which says what to do where it is missing.
import redis.asyncio as aredis  # isort: skip
from redis.asyncio.retry import Retry as Attempts  # isort: skip

__all__ = ["AsyncCategory", "AsyncDeadLetters", "AsyncStreamHandling", "AsyncSubscriber"]


class _Server:
    """One who asks what steps say."""

    def __init__(self, url: str, given: dict[str, Any]) -> None:
        self._url = url
        self._options = options(given, Attempts)
        self._client = self._connect(PATIENCE_S)
        self._reading: aredis.Redis | None = None
        self.is_stopped = asyncio.Event()

    def _connect(self, timeout_s: float, **more: Any) -> aredis.Redis:
        client = aredis.Redis.from_url(self._url, **{**self._options, "socket_timeout": timeout_s, **more})
        client.response_callbacks.clear()
        return client

    async def drive(self, steps: Steps[T], block_s: float = 0.0) -> T:
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
                answer = await self._do(step, block_s)
            except (Fault, Lost, LoginRefused) as failed:
                error = failed

    async def _do(self, step: Ask | Pause | Begin, block_s: float) -> Any:
        if isinstance(step, Pause):
            return await _wait(self.is_stopped, step.seconds)
        try:
            if isinstance(step, Begin):
                await self._close_reading()
                self._reading = self._connect(block_s + PATIENCE_S, single_connection_client=True)
                return None
            client = self._reading if step.is_reading else self._client
            if client is None:
                raise Lost("there is no connection")
            return await client.execute_command(*step.words)  # type: ignore[no-untyped-call]
        except ERRORS as error:
            raise said(error) from None

    async def _close_reading(self) -> None:
        if self._reading is not None:
            reading, self._reading = self._reading, None
            await reading.aclose()
            await reading.connection_pool.disconnect()

    async def close(self) -> None:
        """Closes all connections."""
        await self._close_reading()
        await self._client.aclose()
        await self._client.connection_pool.disconnect()


async def _wait(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


class AsyncSubscriber:
    """A consumer of a group, which reads the urgent lane first. `async with` begins it, and stops it at the end.

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
        """What is said is as in `Subscriber`."""
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
        self._lock = asyncio.Lock()
        self._is_over = False
        self._keeper: asyncio.Task[None] | None = None
        #: A read outlives whoever waits for it: what it brings is for whoever asks next.
        self._task: asyncio.Task[Entry | None] | None = None

    async def __aenter__(self) -> Self:
        await self.begin()
        return self

    async def begin(self) -> None:
        """Connects, and makes the group where it is not there."""
        try:
            await self._drive(self._reading.begin())
            await self._drive(self._reading.look_for_unread())
        except OvertakeError as error:
            await self._server.close()
            raise at_first(error) from None
        self._keeper = asyncio.create_task(self._keep(), name="overtake keeper")

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

    async def unread(self) -> str | None:
        """What the category has and this subscriber never reads, as in `Subscriber.unread`."""
        return await self._told(self._reading.unread())

    async def next(self) -> Entry | None:
        """The next entry; None once it is stopped. May be given up while it waits: nothing is lost."""
        if self._keeper is None:
            raise Closed("this subscriber is not open: use `async with`, or `await begin()`")
        async with self._lock:
            if self._task is None:
                self._task = asyncio.create_task(self._drive(self._reading.next()))
            task = self._task
            try:
                entry = await asyncio.shield(task)
            finally:
                if task.done():
                    self._task = None
            return entry

    async def __aiter__(self) -> AsyncIterator[Entry]:
        while (entry := await self.next()) is not None:
            yield entry

    def is_out(self, entry: Entry) -> bool:
        """Whether it was handed over, and is neither settled nor another consumer's."""
        return self._reading.held.is_out(entry)

    async def ack(self, entry: Entry) -> bool:
        """It is done. Whether it was ours to settle."""
        return await self._told(self._reading.ack(entry))

    async def fail(self, entry: Entry, why: str) -> Fate:
        """It failed: as in `Subscriber.fail`."""
        return await self._told(self._reading.fail(entry, why))

    async def reject(self, entry: Entry, why: str) -> Fate:
        """It will never be done: it is a dead letter of its lane at once."""
        return await self._told(self._reading.reject(entry, why))

    def handle(
        self, handler: Callable[[Entry], Awaitable[Any]], *, concurrency: int = 1, primary_slots: int = 0
    ) -> AsyncStreamHandling:
        """Runs a coroutine for each entry, in a scope of the entry's priority.

        What it returns from is acked; `Reject` makes a dead letter; any other exception is a failure, and it is tried again. The backfill
        lane never uses `primary_slots` of the `concurrency`, as in `Subscriber.handle`.
        """
        self._reading.keep_slots(max(concurrency, 1), primary_slots)
        return AsyncStreamHandling(self, handler, concurrency)

    async def stop(self) -> None:
        """Gives back what is held and not handed over; a consumer that holds nothing leaves the group. Closes the connections."""
        await self.quit()
        await self.finish()

    async def quit(self) -> None:
        """Takes nothing more; whoever waits for an entry hears that there is none."""
        self._reading.is_stopped = True
        self._server.is_stopped.set()
        task = self._task
        while task is not None and not task.done():
            await asyncio.wait([task], timeout=WAKE_S)
            try:
                await self._server.drive(_once(Ask(("CLIENT", "UNBLOCK", self._reading.reads_as))))
            except OvertakeError:
                # Where nobody answers the read ends, too.
                continue

    async def finish(self) -> None:
        """The end of `stop`, after `quit`."""
        if self._is_over:
            return
        self._is_over = True
        if self._task is not None and not self._task.cancelled() and self._task.exception() is None:
            entry = self._task.result()
            if entry is not None:
                self._reading.held.put_back(entry)
        if self._keeper is not None:
            await asyncio.wait([self._keeper])
            try:
                await self._server.drive(self._reading.leave())
            except OvertakeError as error:
                log.warning("what is held stays pending, and is taken over in time: %s", error)
        await self._server.close()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _drive(self, steps: Steps[T]) -> T:
        return await self._server.drive(steps, self._reading.options.block_s)

    async def _told(self, steps: Steps[T]) -> T:
        try:
            return await self._server.drive(steps)
        except (Fault, Lost) as error:
            raise at_first(error) from None

    async def _keep(self) -> None:
        turn = self._reading.options.claim_idle_s / 3
        wait, is_told = turn, False
        while not await _wait(self._server.is_stopped, wait):
            try:
                await self._server.drive(self._reading.keep())
                wait, is_told = turn, False
            except OvertakeError as error:
                if not is_told:
                    log.warning("the server does not hear what is being worked on: %s", error)
                wait, is_told = min(turn, SOON_S), True


def _once(step: Ask) -> Steps[Any]:
    return (yield step)


class AsyncStreamHandling:
    """A handler at work, until it is stopped or ends by itself. Its subscriber ends with it.

    `async with` stops it at the end, and raises why it ended if it did so by itself: the server does not let it read, or a handler
    raised `SystemExit` or `KeyboardInterrupt`.
    """

    def __init__(
        self, subscriber: AsyncSubscriber, handler: Callable[[Entry], Awaitable[Any]], concurrency: int
    ) -> None:
        self._subscriber = subscriber
        self._handler = handler
        self._end = End(subscriber.category)
        self._slots = asyncio.Semaphore(max(concurrency, 1))
        self._works: set[asyncio.Task[None]] = set()
        self._task = asyncio.create_task(self._run(), name="overtake stream handler")

    async def stop(self) -> None:
        """Takes nothing more, waits until what is in hand is finished, and stops the subscriber.

        A handler that stops itself does not wait.
        """
        await self._subscriber.quit()
        if asyncio.current_task() not in self._works:
            await asyncio.wait([self._task])

    async def wait(self) -> None:
        """Waits until somebody stops it; who is cancelled here stops it. If it ended by itself, the reason is raised."""
        try:
            await asyncio.wait([self._task])
        except asyncio.CancelledError:
            await self.stop()
            raise
        self._end.check()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
        self._end.leave(error, self._subscriber.broken)

    async def _run(self) -> None:
        try:
            while True:
                # First room, then an entry: what nobody has room for is left to others.
                await self._slots.acquire()
                entry = await self._subscriber.next()
                if entry is None:
                    return
                work = asyncio.create_task(self._handle(entry))
                self._works.add(work)
                work.add_done_callback(lambda work, its=entry: self._on_done(work, its))  # type: ignore[misc]
        except asyncio.CancelledError as error:
            cancelled = RuntimeError("the task that takes entries was cancelled")
            cancelled.__cause__ = error
            self._end.note(cancelled)
            raise
        except Exception as error:
            self._end.note(error)
        finally:
            while self._works:
                await asyncio.wait(self._works)
            await self._subscriber.stop()

    def _on_done(self, work: asyncio.Task[None], entry: Entry) -> None:
        self._works.discard(work)
        self._slots.release()
        if self._subscriber.is_out(entry):
            # The task was cancelled before the handler began, or before the entry could be settled.
            log.error("the handler of %s of %s was cancelled", entry.id, entry.stream)
            failing = asyncio.create_task(self._fail(entry))
            self._works.add(failing)
            failing.add_done_callback(self._works.discard)
        if not work.cancelled() and (error := work.exception()) is not None:
            self._end.note(error)

    async def _fail(self, entry: Entry) -> None:
        try:
            await self._subscriber.fail(entry, "its handler was cancelled")
        except OvertakeError as error:
            log.error("%s of %s is not settled; it comes again: %s", entry.id, entry.stream, error)

    async def _handle(self, entry: Entry) -> None:
        failed: BaseException | None = None
        try:
            with scope_of(entry.priority_in(self._subscriber.lanes)):
                await self._handler(entry)
        except BaseException as error:
            failed = error
        try:
            if failed is None:
                await self._subscriber.ack(entry)
            elif isinstance(failed, Reject):
                await self._subscriber.reject(entry, reason(failed))
            else:
                if not is_fatal(failed):
                    log_failure(f"the handler of {entry.id} of {entry.stream} failed", failed)
                await self._subscriber.fail(entry, reason(failed))
        except OvertakeError as error:
            log.error("%s of %s was handled and is not settled; it comes again: %s", entry.id, entry.stream, error)
        if failed is not None and is_fatal(failed):
            # Not raised: asyncio would end the loop before anything could be given back.
            self._end.note(failed)
            await self._subscriber.quit()


class AsyncDeadLetters:
    """The dead letters of a category. `async with` closes the connection at the end."""

    def __init__(self, url: str, category: str, *, lanes: Lanes | None = None, **connection: Any) -> None:
        """Connects when it is asked something. Without `lanes` there is one."""
        self._letters = Letters(category, lanes or Lanes(enabled=False))
        self._server = _Server(url, connection)

    async def list(self, limit: int = 100) -> list[DeadLetter]:
        """The newest of all lanes, so many at most."""
        return await self._ask(self._letters.list(limit))

    async def inspect(self, letter_id: str, lane: Lane | None = None) -> DeadLetter | None:
        """The letter of an id; the lane need be said only where both have one of that id."""
        return await self._ask(self._letters.inspect(letter_id, lane))

    async def replay(self, letter_id: str, lane: Lane | None = None) -> bool:
        """Puts a letter back at the end of the stream it came from, as what it was. Whether it was there."""
        return await self._ask(self._letters.replay(letter_id, lane))

    async def replay_all(self, lane: Lane | None = None) -> int:
        """Puts back all there are, or those of one lane, the oldest first; those that come meanwhile stay. How many."""
        return await self._ask(self._letters.replay_all(lane))

    async def remove(self, letter_id: str, lane: Lane | None = None) -> bool:
        """Deletes a letter. Whether it was there."""
        return await self._ask(self._letters.remove(letter_id, lane))

    async def purge(self, lane: Lane | None = None) -> int:
        """Deletes all there are, or those of one lane. How many."""
        return await self._ask(self._letters.purge(lane))

    async def close(self) -> None:
        """Closes the connection."""
        await self._server.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _ask(self, steps: Steps[T]) -> T:
        try:
            return await self._server.drive(self._letters.told(steps))
        except Lost as error:
            raise at_first(error) from None


class AsyncCategory:
    """A category of streams, for those who write into it and who see to it. `async with` closes the connection at the end."""

    def __init__(
        self, url: str, category: str, *, lanes: Lanes | None = None, partitions: bool = False, **connection: Any
    ) -> None:
        """Connects when it is asked something. Without `lanes` there is one. With `partitions` a key has streams of its own."""
        self._work = Work(category, lanes or Lanes(enabled=False), partitions)
        self._server = _Server(url, connection)

    async def publish(
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
        return await self._ask(self._work.publish(data, type, id, metadata, priority, key))

    async def groups(self) -> list[str]:
        """The groups that any of its streams has."""
        return await self._ask(self._work.groups())

    async def lag(self, group: str) -> list[Lag]:
        """How far a group is in each lane, of all partitions together. One that is not there yet has everything before it."""
        return await self._ask(self._work.lag(group))

    async def trim(self) -> int:
        """Deletes the entries that every group has settled, up to the first that any group has not read or not settled. How many.

        A stream stays whole where one of the category's groups is missing. Without any group nothing is deleted. A group that nobody
        reads any more keeps everything: `XGROUP DESTROY` it. A group that is made later does not get what is gone. Dead letters stay.
        """
        return await self._ask(self._work.trim())

    async def close(self) -> None:
        """Closes the connection."""
        await self._server.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _ask(self, steps: Steps[T]) -> T:
        try:
            return await self._server.drive(self._work.told(steps))
        except Lost as error:
            raise at_first(error) from None
