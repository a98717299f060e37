"""Handlers of the asyncio client: a task for each message, in a scope of its priority."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

from ..errors import Unroutable
from ..handling import ending_of, log, reply_of
from ..priority import scope_of
from .consumer import AsyncConsumer, AsyncDelivery

__all__ = ["AsyncHandling"]

AsyncHandler = Callable[[AsyncDelivery], Awaitable[Any]]


class AsyncHandling:
    """A handler at work, until it is stopped. `async with` stops it at the end."""

    def __init__(self, consumer: AsyncConsumer, handler: AsyncHandler, concurrency: int) -> None:
        self._consumer = consumer
        self._handler = handler
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
        """Waits until somebody stops it; who is cancelled here stops it. If the broker ended it, that is raised."""
        try:
            await asyncio.shield(self._task)
        except asyncio.CancelledError:
            await self.stop()
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _run(self) -> None:
        try:
            await self._take()
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
            work.add_done_callback(self._on_done)

    def _on_done(self, work: asyncio.Task[None]) -> None:
        self._works.discard(work)
        self._slots.release()

    async def _handle(self, delivery: AsyncDelivery) -> None:
        failed: Exception | None = None
        try:
            with scope_of(delivery.priority):
                reply = reply_of(await self._handler(delivery), delivery)
                if reply is not None:
                    await _answer(delivery, reply)
        except Exception as error:
            failed = error
        await delivery.settle(ending_of(failed, delivery))


async def _answer(delivery: AsyncDelivery, reply: bytes | str) -> None:
    try:
        await delivery.reply(reply)
    except Unroutable:
        log.info("nobody waits for an answer of %s any more", delivery.queue)
