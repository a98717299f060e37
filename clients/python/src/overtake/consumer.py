"""Consumers of the plain client: what is pushed is kept until somebody takes it.

```
 link's thread:  channel ── deliver ──▶ [inbox] ──▶ threads of the application ── ack, nack, reject ──▶ link's thread
```

A consumer has a channel of its own, so that its window is its own. When the connection is lost the broker puts back whatever was out;
what waits in the inbox from before is then nobody's, and an ack of it does nothing: the message comes again.
"""

from __future__ import annotations

import logging
import queue
import threading
import weakref
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self

from pika.adapters.select_connection import SelectConnection
from pika.exceptions import ChannelClosedByBroker

from .delivery import Received
from .durations import Duration, seconds
from .errors import OvertakeError, cancelled_by_broker, refused_over_amqp, timed_out
from .handling import Ending
from .link import Link

__all__ = ["Consumer", "Delivery"]

log = logging.getLogger("overtake")


class Delivery(Received):
    """A message in our hands: `ack`, `nack` or `reject` it, once. Any thread may."""

    __slots__ = ("_channel", "_consumer", "_link", "_reply", "_tag")

    def __init__(
        self, link: Link, reply: Reply, queue: str, channel: Any, method: Any, properties: Any, body: bytes
    ) -> None:
        super().__init__(queue, body, properties, method.redelivered, method.exchange, method.routing_key)
        self._link = link
        self._reply = reply
        self._channel = channel
        self._tag: int | None = method.delivery_tag
        self._consumer: Any = None

    def ack(self) -> None:
        """The work is done: the message is settled."""
        self.settle(Ending.ACK)

    def nack(self) -> None:
        """The work failed: it is put back to its place, after the queue's backoff; dead-lettered when its limit is reached."""
        self.settle(Ending.NACK)

    def reject(self) -> None:
        """It will never do: it is dead-lettered."""
        self.settle(Ending.REJECT)

    def settle(self, ending: Ending) -> None:
        """Any of the three. The second time, or without acknowledgements, nothing happens."""
        tag, self._tag = self._tag, None
        self._consumer = None
        if tag is not None:
            channel = self._channel
            self._link.call(lambda: _on_settle(channel, tag, ending))

    def reply(self, body: bytes | str, *, priority: int | None = None) -> None:
        """Answers whoever asked, with the same correlation id."""
        self._reply(self, body, priority)


Reply = Callable[[Received, "bytes | str", "int | None"], None]


def _on_settle(channel: Any, tag: int, ending: Ending) -> None:
    if not channel.is_open:
        log.debug("the connection was lost before a message was settled: it comes again")
    elif ending is Ending.ACK:
        channel.basic_ack(tag)
    elif ending is Ending.NACK:
        channel.basic_nack(tag, requeue=True)
    else:
        channel.basic_reject(tag, requeue=False)


class _Over:
    """What wakes those who wait for a message when none will come."""

    def __init__(self, error: OvertakeError | None) -> None:
        self.error = error


_Item = tuple[Any, Any, Any, bytes] | _Over


class Subscription:
    """The part of a consumer that the link knows."""

    def __init__(self, link: Link, queue_name: str, window: int, arguments: dict[str, Any], exclusive: bool) -> None:
        self.link = link
        self.queue = queue_name
        self.inbox: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._window = window
        self._arguments = arguments
        self._exclusive = exclusive
        self._connection: SelectConnection | None = None
        self._tag: str | None = None
        self.channel: Any = None
        self._is_over = False
        self.is_stopping = False
        self.is_consuming = threading.Event()
        self.is_closed = threading.Event()

    @property
    def is_busy(self) -> bool:
        """A message may come whenever it likes."""
        return True

    def stop(self) -> None:
        """Nothing comes any more; what is in hand may still be settled."""
        try:
            self.link.call(self._on_stop)
        except OvertakeError:
            log.debug("the consumer of %s has ended with its client", self.queue)

    def close(self) -> None:
        """Ends it, and what is not settled is put back."""
        try:
            self.link.call(self._on_close)
        except OvertakeError:
            self.is_closed.set()  # It has ended with its client.

    def on_up(self, connection: SelectConnection) -> None:
        self._connection = connection
        connection.channel(on_open_callback=self._on_channel)

    def on_down(self, error: OvertakeError) -> None:
        self.channel = self._connection = self._tag = None
        if self._is_over:
            self._leave()

    def on_end(self, error: OvertakeError) -> None:
        self._end(error)
        self.is_closed.set()

    def _on_channel(self, channel: Any) -> None:
        self.channel = channel
        channel.add_on_close_callback(self._on_channel_closed)
        channel.add_on_cancel_callback(lambda _: self._on_cancelled())
        if self._is_over:
            channel.close()
        else:
            channel.basic_qos(prefetch_count=self._window, callback=lambda _: self._on_window(channel))

    def _on_window(self, channel: Any) -> None:
        if self._is_over or self.is_stopping:
            return
        self._tag = channel.basic_consume(
            self.queue,
            self._on_message,
            arguments=self._arguments,
            exclusive=self._exclusive,
            callback=lambda _: self.is_consuming.set(),
        )

    def _on_message(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self.inbox.put((channel, method, properties, body))

    def _on_cancelled(self) -> None:
        # The channel stays: what is in hand may still be settled.
        self._tag = None
        self._end(cancelled_by_broker(self.queue))

    def _on_channel_closed(self, channel: Any, reason: BaseException) -> None:
        if channel is not self.channel or self._connection is None or not self._connection.is_open:
            return
        if isinstance(reason, ChannelClosedByBroker):
            self._end(refused_over_amqp(reason.reply_code, reason.reply_text))
        self._leave()

    def _on_stop(self) -> None:
        if self.channel is not None and self.channel.is_open and self._tag is not None:
            self.channel.basic_cancel(self._tag)
            self._tag = None

    def _on_close(self) -> None:
        self._end(None)
        if self.channel is not None and self.channel.is_open:
            self.channel.close()  # It is heard of once the broker has put back what was out.
        elif self.channel is None or self.channel.is_closed:
            self._leave()

    def _end(self, error: OvertakeError | None) -> None:
        if not self._is_over:
            self._is_over = True
            self.inbox.put(_Over(error))

    def _leave(self) -> None:
        self.link.on_detach(self)
        self.is_closed.set()


class Consumer:
    """Messages of a queue, as they come: an iterator that ends when it is closed. Several threads may share it.

    At most `window` messages are out at once: what was given out and is not settled, and what waits here to be taken. When the
    object is gone, so is the consumer, and what was not settled is put back.
    """

    def __init__(self, subscription: Subscription, reply: Reply) -> None:
        self._subscription = subscription
        self._reply = reply
        self._finalizer = weakref.finalize(self, subscription.close)
        self._finalizer.atexit = False
        subscription.link.attach(subscription)

    @property
    def queue(self) -> str:
        """The queue it consumes from."""
        return self._subscription.queue

    def __iter__(self) -> Iterator[Delivery]:
        return self

    def __next__(self) -> Delivery:
        return self.next()

    def next(self, timeout: Duration | None = None) -> Delivery:
        """The next message. After `timeout` (a number is in seconds) without one: `TimedOut`."""
        subscription, timeout = self._subscription, seconds(timeout, "timeout")
        while True:
            try:
                item = subscription.inbox.get(timeout=timeout)
            except queue.Empty:
                assert timeout is not None
                raise timed_out(
                    f"waiting for a message of {subscription.queue}", timeout, subscription.link.why
                ) from None
            if isinstance(item, _Over) or subscription.is_stopping:
                # For whoever else waits.
                subscription.inbox.put(item)
                if isinstance(item, _Over) and item.error is not None:
                    raise item.error
                raise StopIteration
            channel, method, properties, body = item
            if channel is subscription.channel:
                delivery = Delivery(
                    subscription.link, self._reply, subscription.queue, channel, method, properties, body
                )
                # As long as somebody has a message in hand, its channel stays.
                delivery._consumer = self
                return delivery

    def wait_until_consuming(self, timeout: Duration | None = None) -> bool:
        """Waits until the broker has said that it knows this consumer; whether it has. A number is in seconds."""
        return self._subscription.is_consuming.wait(seconds(timeout, "timeout"))

    def stop(self) -> None:
        """Takes nothing more. What is in hand may be settled; the iterator ends, and what nobody took is put back by `close`."""
        self._subscription.is_stopping = True
        self._subscription.stop()
        self._subscription.inbox.put(_Over(None))

    def close(self) -> None:
        """Ends it, and returns once the broker has heard. What is not settled is put back."""
        self._finalizer()
        self._subscription.is_closed.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
