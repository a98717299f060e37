"""Handlers of the asyncio client: a task for each message, in a scope of its priority."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

from ..errors import OvertakeError, Unroutable
from ..handling import End, ending_of, is_fatal, log, reply_of
from ..priority import scope_of
from .consumer import AsyncConsumer, AsyncDelivery

__all__ = ["AsyncHandling"]

AsyncHandler = Callable[[AsyncDelivery], Awaitable[Any]]


class AsyncHandling:
    """A handler at work, until it is stopped or ends by itself.

    `async with` stops it at the end, and raises why it ended if it did so by itself: the broker ended its consumer, or a handler raised
    `SystemExit` or `KeyboardInterrupt`.
    """

    def __init__(self, consumer: AsyncConsumer, handler: AsyncHandler, concurrency: int) -> None:
        self._consumer = consumer
        self._handler = handler
        self._end = End(consumer.queue)
        self._slots = asyncio.Semaphore(concurrency)
        self._works: set[asyncio.Task[None]] = set()
        self._task = asyncio.create_task(self._run(), name="overtake handler")

    async def stop(self) -> None:
        """Takes nothing more, and waits until what is in hand is finished. What nobody began is put back.

        A handler that stops itself does not wait.
        """
        self._consumer.stop()
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
        self._end.leave(error)

    async def _run(self) -> None:
        try:
            await self._take()
        except asyncio.CancelledError as error:
            cancelled = RuntimeError("the task that takes messages was cancelled")
            cancelled.__cause__ = error
            self._end.note(cancelled)
            raise
        except Exception as error:
            self._end.note(error)
        finally:
            while self._works:
                await asyncio.wait(self._works)
            await self._consumer.close()

    async def _take(self) -> None:
        while True:
            # First room, then a message: what nobody has room for stays in the window.
            await self._slots.acquire()
            try:
                delivery = await anext(self._consumer)
            except StopAsyncIteration:
                return
            work = asyncio.create_task(self._handle(delivery))
            self._works.add(work)
            work.add_done_callback(lambda work, its=delivery: self._on_done(work, its))  # type: ignore[misc]

    def _on_done(self, work: asyncio.Task[None], delivery: AsyncDelivery) -> None:
        self._works.discard(work)
        self._slots.release()
        if not delivery.is_settled:
            # The task was cancelled before the handler began.
            log.error("the handler of %s was cancelled, its message is put back", delivery.queue)
            putting_back = asyncio.create_task(delivery.nack())
            self._works.add(putting_back)
            putting_back.add_done_callback(self._works.discard)
        if not work.cancelled() and (error := work.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """The handling ends: it takes nothing more."""
        self._end.note(error)
        self._consumer.stop()

    async def _handle(self, delivery: AsyncDelivery) -> None:
        failed: BaseException | None = None
        try:
            with scope_of(delivery.priority):
                reply = reply_of(await self._handler(delivery), delivery)
                if reply is not None:
                    await _answer(delivery, reply)
        except BaseException as error:
            failed = error
        if failed is not None and is_fatal(failed):
            # First: else its message would come here once more. Not raised: asyncio would end the loop before anything could be put back.
            self._fail(failed)
            await self._consumer.stopped()
        try:
            await delivery.settle(ending_of(failed, delivery))
        except OvertakeError as error:
            # The client has ended, and its connection with it: the message comes again.
            log.debug("a message of %s was handled and is not settled: %s", delivery.queue, error)


async def _answer(delivery: AsyncDelivery, reply: bytes | str) -> None:
    try:
        await delivery.reply(reply)
    except Unroutable:
        log.info("nobody waits for an answer of %s any more", delivery.queue)
