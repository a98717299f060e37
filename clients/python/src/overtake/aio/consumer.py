"""Consumers of the asyncio client: what is pushed is kept until somebody takes it.

A consumer has a channel of its own, so that its window is its own. When the connection is lost the broker puts back whatever was out;
what waits here from before is then nobody's, and an ack of it does nothing: the message comes again.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self, cast

from aio_pika.abc import AbstractConnection
from aiormq.abc import AbstractChannel as Underlay
from aiormq.abc import DeliveredMessage
from pamqp.commands import Basic

from ..delivery import Received
from ..errors import OvertakeError, cancelled_by_broker
from ..handling import Ending
from .link import Link, channel_refusal, open_channel

__all__ = ["AsyncConsumer", "AsyncDelivery"]

log = logging.getLogger("overtake")

Reply = Callable[[Received, "bytes | str", "int | None"], Awaitable[None]]


class AsyncDelivery(Received):
    """A message in our hands: `ack`, `nack` or `reject` it, once."""

    __slots__ = ("_channel", "_consumer", "_reply", "_tag")

    def __init__(self, reply: Reply, queue: str, message: DeliveredMessage) -> None:
        delivery = cast("Basic.Deliver", message.delivery)
        super().__init__(
            queue,
            message.body,
            message.header.properties,
            bool(delivery.redelivered),
            delivery.exchange or "",
            delivery.routing_key or "",
        )
        self._reply = reply
        self._channel = message.channel
        self._tag = delivery.delivery_tag
        self._consumer: Any = None

    @property
    def is_settled(self) -> bool:
        """Whether it was settled here, or needs not to be."""
        return self._tag is None

    async def ack(self) -> None:
        """The work is done: the message is settled."""
        await self.settle(Ending.ACK)

    async def nack(self) -> None:
        """The work failed: it is put back to its place, after the queue's backoff; dead-lettered when its limit is reached."""
        await self.settle(Ending.NACK)

    async def reject(self) -> None:
        """It will never do: it is dead-lettered."""
        await self.settle(Ending.REJECT)

    async def settle(self, ending: Ending) -> None:
        """Any of the three. The second time, or without acknowledgements, nothing happens."""
        tag, self._tag = self._tag, None
        self._consumer = None
        if tag is None:
            return
        channel = self._channel
        try:
            if ending is Ending.ACK:
                await channel.basic_ack(tag, wait=False)
            elif ending is Ending.NACK:
                await channel.basic_nack(tag, requeue=True, wait=False)
            else:
                await channel.basic_reject(tag, requeue=False, wait=False)
        except Exception:
            if not channel.is_closed:
                raise
            log.debug("the connection was lost before a message was settled: it comes again")

    async def reply(self, body: bytes | str, *, priority: int | None = None) -> None:
        """Answers whoever asked, with the same correlation id."""
        await self._reply(self, body, priority)


class _Over:
    """What wakes those who wait for a message when none will come."""

    def __init__(self, error: OvertakeError | None) -> None:
        self.error = error


class Subscription:
    """The part of a consumer that the link knows."""

    def __init__(self, link: Link, queue: str, window: int, arguments: dict[str, Any], exclusive: bool) -> None:
        self.link = link
        self.queue = queue
        self.inbox: asyncio.Queue[DeliveredMessage | _Over] = asyncio.Queue()
        self.channel: Underlay | None = None
        self.is_stopping = False
        self.is_consuming = asyncio.Event()
        self._window = window
        self._arguments = arguments
        self._exclusive = exclusive
        self._kept: Any = None
        self._tag: str | None = None
        self._is_over = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.get_running_loop()
        self._run(self._start())

    def stop(self) -> None:
        """Nothing comes any more; what is in hand may still be settled."""
        self.is_stopping = True
        self.inbox.put_nowait(_Over(None))
        if self.channel is not None and self._tag is not None:
            self._run(self._cancel(self.channel, self._tag))

    async def stopped(self) -> None:
        """Waits until the broker has been told what it was to be told."""
        others = [task for task in self._tasks if task is not asyncio.current_task()]
        await asyncio.gather(*others, return_exceptions=True)

    async def close(self) -> None:
        """Ends it, and what is not settled is put back."""
        self.end(None)
        # Acks that are on their way go before.
        await self.stopped()
        kept, self._kept = self._kept, None
        if kept is not None and not kept.is_closed:
            await kept.close()

    def close_soon(self) -> None:
        """The same from a finalizer, which may run anywhere."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: self._run(self.close()))

    async def on_up(self, connection: AbstractConnection) -> None:
        if self._is_over or self.is_stopping:
            return
        kept, channel = await open_channel(connection, confirms=False)
        self._kept, self.channel = kept, channel
        kept.close_callbacks.add(lambda _, error: self._on_channel_closed(channel, error))
        channel.on_consumer_cancel_callbacks.add(self._on_cancelled)
        try:
            await channel.basic_qos(prefetch_count=self._window)
            answer = await channel.basic_consume(
                self.queue, self._on_message, arguments=self._arguments, exclusive=self._exclusive
            )
        except Exception as error:
            refusal = channel_refusal(error)
            if refusal is not None:
                raise refusal from error
            raise
        self._tag = answer.consumer_tag
        self.is_consuming.set()

    def on_down(self, error: OvertakeError) -> None:
        self.channel = self._tag = self._kept = None

    def on_end(self, error: OvertakeError) -> None:
        self.end(error)

    def end(self, error: OvertakeError | None) -> None:
        """Nothing comes any more."""
        if not self._is_over:
            self._is_over = True
            self.link.detach(self)
            self.inbox.put_nowait(_Over(error))

    async def _start(self) -> None:
        await self.link.attach(self)

    async def _cancel(self, channel: Underlay, tag: str) -> None:
        try:
            await channel.basic_cancel(tag)
        except Exception:
            if not channel.is_closed:
                raise

    async def _on_message(self, message: DeliveredMessage) -> None:
        self.inbox.put_nowait(message)

    def _on_cancelled(self, _: object) -> None:
        self.end(cancelled_by_broker(self.queue))

    def _on_channel_closed(self, channel: Underlay, error: BaseException | None) -> None:
        refusal = channel_refusal(error)
        if refusal is not None and channel is self.channel:
            self.end(refusal)

    def _run(self, work: Any) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class AsyncConsumer:
    """Messages of a queue, as they come: an asynchronous iterator that ends when it is closed. Several tasks may share it.

    At most `window` messages are out at once: what was given out and is not settled, and what waits here to be taken. When the
    object is gone, so is the consumer, and what was not settled is put back.
    """

    def __init__(self, subscription: Subscription, reply: Reply) -> None:
        self._subscription = subscription
        self._reply = reply
        self._finalizer = weakref.finalize(self, subscription.close_soon)
        self._finalizer.atexit = False

    @property
    def queue(self) -> str:
        """The queue it consumes from."""
        return self._subscription.queue

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AsyncDelivery:
        subscription = self._subscription
        while True:
            item = await subscription.inbox.get()
            if isinstance(item, _Over) or subscription.is_stopping:
                # For whoever else waits.
                subscription.inbox.put_nowait(item)
                if isinstance(item, _Over) and item.error is not None:
                    raise item.error
                raise StopAsyncIteration
            if item.channel is subscription.channel:
                delivery = AsyncDelivery(self._reply, subscription.queue, item)
                # As long as somebody has a message in hand, its channel stays.
                delivery._consumer = self
                return delivery

    async def wait_until_consuming(self) -> None:
        """Waits until the broker has said that it knows this consumer."""
        await self._subscription.is_consuming.wait()

    def stop(self) -> None:
        """Takes nothing more. What is in hand may be settled; the iterator ends, and what nobody took is put back by `close`."""
        self._subscription.stop()

    async def stopped(self) -> None:
        """Waits until the broker has heard of `stop`."""
        await self._subscription.stopped()

    async def close(self) -> None:
        """Ends it, and returns once the broker has heard. What is not settled is put back."""
        self._finalizer.detach()
        await self._subscription.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
