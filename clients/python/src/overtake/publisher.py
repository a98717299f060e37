"""Publishes on one channel with confirms, on the link's thread.

```
 publish ──▶ [waiting] ── sent ──▶ [unconfirmed] ── ack, nack, return ──▶ settled
                ▲                        │
                └── connection lost ─────┘   (in their order; so each is taken at least once)
```

When the broker closes the channel for one message, it does not say for which. So what was unconfirmed is then published one by one,
each alone on the channel, until the guilty one has its error.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

import pika
from pika.adapters.select_connection import SelectConnection
from pika.exceptions import ChannelClosedByBroker, ChannelWrongStateError

from .errors import OvertakeError, not_confirmed, refused_over_amqp, timed_out, unroutable
from .link import Link
from .message import Message, encoded
from .numbering import Numbering


class Publish:
    """A message on its way."""

    __slots__ = (
        "body",
        "error",
        "exchange",
        "is_over",
        "is_sent",
        "mandatory",
        "number",
        "properties",
        "routing_key",
        "waiter",
    )

    def __init__(self, message: Message, exchange: str, routing_key: str, waiter: Waiter) -> None:
        self.body, properties = encoded(message)
        self.properties = pika.BasicProperties(**properties)
        self.exchange = exchange
        self.routing_key = routing_key
        self.mandatory = message.must_arrive(exchange)
        self.waiter = waiter
        self.number: int | None = None
        self.error: OvertakeError | TypeError | None = None
        self.is_over = False
        self.is_sent = False

    @property
    def where(self) -> str:
        """Whereto, for people."""
        return f"exchange {self.exchange!r}, routing key {self.routing_key!r}" if self.exchange else self.routing_key


class Waiter:
    """Waits until so many publishes are settled."""

    __slots__ = ("_left", "_lock", "is_over")

    def __init__(self, publishes: int) -> None:
        self.is_over = False
        self._left = publishes
        self._lock = threading.Lock()
        self._lock.acquire()

    def on_settled(self) -> None:
        """One more is."""
        self._left -= 1
        if self._left == 0:
            self.is_over = True
            self._lock.release()

    def wait(self, timeout: float | None) -> bool:
        """Whether all are, in time."""
        return self._lock.acquire(timeout=-1 if timeout is None else timeout)


class Publisher:
    """Publishes, again if need be."""

    def __init__(self, link: Link, *, numbering: Numbering | None = None, is_repeating: bool = True) -> None:
        self._link = link
        self._numbering = numbering
        self._is_repeating = is_repeating
        self._connection: SelectConnection | None = None
        self._channel: Any = None
        self._tag = 0
        self._alone = 0
        self._waiting: deque[Publish] = deque()
        self._unconfirmed: dict[int, Publish] = {}

    @property
    def is_busy(self) -> bool:
        """Whether a confirm or a channel is waited for."""
        return bool(self._unconfirmed) or self._channel is None

    def publish(self, publishes: Sequence[Publish], waiter: Waiter, timeout: float | None) -> None:
        """Sends these, in this order, and waits for them."""
        self._judge(publishes, self._link.drive(lambda: self.on_publish(publishes), waiter, timeout), timeout)

    def send(self, publishes: Sequence[Publish]) -> None:
        """Sends these, in this order."""
        self._link.call(lambda: self.on_publish(publishes))

    def settle(self, publishes: Sequence[Publish], waiter: Waiter, timeout: float | None) -> None:
        """Waits for these."""
        self._judge(publishes, waiter.wait(timeout), timeout)

    def _judge(self, publishes: Sequence[Publish], is_in_time: bool, timeout: float | None) -> None:
        """Raises the first error, with a note if there are more."""
        if not is_in_time:
            assert timeout is not None
            self._link.call(lambda: self._on_given_up(publishes))
            raise timed_out("publishing", timeout, self._link.why)
        failed = [(at, publish.error) for at, publish in enumerate(publishes) if publish.error is not None]
        if failed:
            at, error = failed[0]
            if len(publishes) > 1:
                error.add_note(f"message {at} of these {len(publishes)}, and {len(failed) - 1} more")
            raise error

    def on_up(self, connection: SelectConnection) -> None:
        self._connection = connection
        connection.channel(on_open_callback=self.on_channel)

    def on_channel(self, channel: Any) -> None:
        channel.add_on_close_callback(self._on_channel_closed)
        channel.add_on_return_callback(self._on_return)
        channel.confirm_delivery(self._on_confirm, lambda _: self._on_ready(channel))

    def on_down(self, error: OvertakeError) -> None:
        self._connection = self._channel = None
        unconfirmed = list(self._unconfirmed.values())
        self._unconfirmed.clear()
        if self._is_repeating:
            self._waiting.extendleft(reversed(unconfirmed))
        else:
            for publish in unconfirmed:
                self._settle(publish, error)

    def on_end(self, error: OvertakeError) -> None:
        left = [*self._unconfirmed.values(), *self._waiting]
        self._unconfirmed.clear()
        self._waiting.clear()
        for publish in left:
            self._settle(publish, error)

    def on_publish(self, publishes: Sequence[Publish]) -> None:
        numbering = self._numbering
        for publish in publishes:
            if numbering is not None:
                publish.number = numbering.next()
                headers = numbering.headers(publish.number)
                publish.properties.headers = {**(publish.properties.headers or {}), **headers}
            if self._channel is None or self._alone or self._waiting:
                self._waiting.append(publish)
            else:
                self._send(publish)

    def _on_ready(self, channel: Any) -> None:
        self._channel, self._tag = channel, 0
        self._go_on()

    def _go_on(self) -> None:
        while self._waiting and self._channel is not None and not (self._alone and self._unconfirmed):
            self._send(self._waiting.popleft())

    def _send(self, publish: Publish) -> None:
        if publish.is_over:
            return  # Given up while it waited.
        try:
            self._channel.basic_publish(
                publish.exchange, publish.routing_key, publish.body, publish.properties, publish.mandatory
            )
        except ChannelWrongStateError:
            self._waiting.appendleft(publish)  # Nothing was sent: we hear in a moment that the channel is lost.
            self._channel = None
            return
        except Exception as error:
            # Nothing was sent: a header of a type that AMQP has not, or a name that is too long.
            wrong = TypeError(f"a message to {publish.where} cannot be written: {error!r}; correct its headers")
            wrong.__cause__ = error
            self._settle(publish, wrong)
            return
        publish.is_sent = True
        self._tag += 1
        self._unconfirmed[self._tag] = publish

    def _on_return(self, _channel: Any, method: Any, _properties: Any, body: bytes) -> None:
        # It does not say which one it was. What goes the same way with the same body has the same fate.
        for publish in self._unconfirmed.values():
            if (publish.error, publish.exchange, publish.routing_key, publish.body) == (
                None,
                method.exchange,
                method.routing_key,
                body,
            ):
                publish.error = unroutable(publish.where)
                return

    def _on_confirm(self, frame: Any) -> None:
        method = frame.method
        unconfirmed = self._unconfirmed
        if method.multiple:
            tags = [tag for tag in unconfirmed if tag <= method.delivery_tag]
        else:
            tags = [method.delivery_tag] if method.delivery_tag in unconfirmed else []
        is_ack = method.NAME == "Basic.Ack"
        for tag in tags:
            publish = unconfirmed.pop(tag)
            self._settle(publish, publish.error if is_ack else not_confirmed(publish.where))
            if self._alone:
                self._alone -= 1
        if self._waiting:
            self._go_on()

    def _on_channel_closed(self, channel: Any, reason: BaseException) -> None:
        if self._connection is None or not self._connection.is_open:
            return  # The connection tells.
        self._channel = None
        suspects = list(self._unconfirmed.values())
        self._unconfirmed.clear()
        if isinstance(reason, ChannelClosedByBroker) and len(suspects) == 1:
            self._settle(suspects[0], refused_over_amqp(reason.reply_code, reason.reply_text))
            self._alone = max(self._alone - 1, 0)
        else:
            self._alone = len(suspects)
            self._waiting.extendleft(reversed(suspects))
        self._connection.channel(on_open_callback=self.on_channel)

    def _on_given_up(self, publishes: Sequence[Publish]) -> None:
        for publish in publishes:
            if not publish.is_over:
                publish.is_over = True
                self._close_number(publish)

    def _settle(self, publish: Publish, error: OvertakeError | TypeError | None) -> None:
        if publish.is_over:
            return
        publish.is_over = True
        publish.error = error
        self._close_number(publish)
        publish.waiter.on_settled()

    def _close_number(self, publish: Publish) -> None:
        if self._numbering is not None and publish.number is not None:
            self._numbering.close(publish.number)
