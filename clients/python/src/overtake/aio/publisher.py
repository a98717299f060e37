"""Publishes on one channel with confirms; again, if the connection is lost before the confirm.

When the broker closes the channel for one message, all that were unconfirmed hear so. Each of them is then published again alone, on a
channel for that, so that only the guilty one has an error.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from aio_pika.abc import AbstractConnection
from aiormq.abc import AbstractChannel as Underlay
from aiormq.exceptions import ChannelInvalidStateError, DeliveryError
from pamqp.commands import Basic

from ..errors import OvertakeError, not_confirmed, timed_out, unanswered, unroutable
from ..message import Message, encoded
from ..numbering import Numbering
from .link import Link, channel_refusal, open_channel


class Publish:
    """A message on its way."""

    __slots__ = ("body", "exchange", "is_sent", "mandatory", "properties", "routing_key")

    def __init__(self, message: Message, exchange: str, routing_key: str) -> None:
        self.body, properties = encoded(message)
        kind = properties.pop("type", None)
        self.properties = Basic.Properties(**cast("Any", properties), message_type=kind)
        self.exchange = exchange
        self.routing_key = routing_key
        self.mandatory = message.must_arrive(exchange)
        self.is_sent = False

    @property
    def where(self) -> str:
        """Whereto, for people."""
        return f"exchange {self.exchange!r}, routing key {self.routing_key!r}" if self.exchange else self.routing_key


class Publisher:
    """Publishes, again if need be."""

    def __init__(
        self, link: Link, *, timeout: float | None, numbering: Numbering | None = None, is_repeating: bool = True
    ) -> None:
        self._link = link
        self._timeout = timeout
        self._numbering = numbering
        self._is_repeating = is_repeating
        self._connection: AbstractConnection | None = None
        self._kept: Any = None  # As long as it is held, the channel is open.
        self._channel: Underlay | None = None
        self._changed = asyncio.Event()
        self._alone = asyncio.Lock()
        self._ended: OvertakeError | None = None

    async def on_up(self, connection: AbstractConnection) -> None:
        self._connection = connection
        await self._open()

    def on_down(self, error: OvertakeError) -> None:
        self._connection = self._channel = self._kept = None
        self._change()

    def on_end(self, error: OvertakeError) -> None:
        self._connection = self._channel = self._kept = None
        self._ended = error
        self._change()

    async def publish(self, publish: Publish) -> None:
        """Returns once it is durable."""
        if self._numbering is None:
            await self._publish(publish)
            return
        number = self._numbering.next()
        headers = self._numbering.headers(number)
        publish.properties.headers = {**(publish.properties.headers or {}), **headers}
        try:
            await self._publish(publish)
        finally:
            self._numbering.close(number)

    async def set_up(self, channel: Underlay) -> None:
        """What else a new channel needs."""

    async def _publish(self, publish: Publish) -> None:
        # The common case: a channel is there, and takes it.
        channel = self._channel
        if channel is not None and not channel.is_closed and await self._attempt(channel, publish, self._timeout):
            return
        try:
            async with asyncio.timeout(self._timeout):
                while not await self._publish_again(publish):
                    pass
        except TimeoutError as error:
            if isinstance(error, OvertakeError):
                raise
            assert self._timeout is not None
            raise timed_out("publishing", self._timeout, self._link.why) from None

    async def _publish_again(self, publish: Publish) -> bool:
        channel = await self._ready()
        if channel.is_closed:
            async with self._alone:
                if self._channel is channel and self._connection is not None:
                    await self._reopen(self._connection)
            return False
        return await self._attempt(channel, publish, None)

    async def _attempt(self, channel: Underlay, publish: Publish, timeout: float | None) -> bool:
        """Whether it was confirmed; False: the channel was lost before. What the broker says no to is raised."""
        publish.is_sent = True
        try:
            answer = await channel.basic_publish(
                publish.body,
                exchange=publish.exchange,
                routing_key=publish.routing_key,
                properties=publish.properties,
                mandatory=publish.mandatory,
                timeout=timeout,
            )
        except DeliveryError as error:
            raise not_confirmed(publish.where) from error
        except ChannelInvalidStateError:
            publish.is_sent = False
            return False
        except TimeoutError:
            if timeout is None:
                raise
            raise timed_out("publishing", timeout, self._link.why) from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self._hear_lost(None)  # It is the channel that was cancelled.
            return False
        except Exception as error:
            if not channel.is_closed:
                raise TypeError(
                    f"a message to {publish.where} cannot be written: {error!r}; correct its headers"
                ) from error
            refusal = channel_refusal(error)
            if refusal is None or self._connection is None:
                self._hear_lost(error)
                return False
            return await self._publish_alone(publish)
        if not isinstance(answer, Basic.Ack):
            raise unroutable(publish.where)
        return True

    async def _publish_alone(self, publish: Publish) -> bool:
        async with self._alone:
            connection = self._connection
            if connection is None:
                return False
            if self._channel is not None and self._channel.is_closed:
                await self._reopen(connection)
            channel = self._channel
            if channel is None:
                return False
            try:
                kept, alone = await open_channel(connection, confirms=True)
                answer = await alone.basic_publish(
                    publish.body,
                    exchange=publish.exchange,
                    routing_key=publish.routing_key,
                    properties=publish.properties,
                    mandatory=publish.mandatory,
                )
            except DeliveryError as error:
                raise not_confirmed(publish.where) from error
            except Exception as error:
                refusal = channel_refusal(error)
                if refusal is not None:
                    raise refusal from error
                self._hear_lost(error)
                return False
            await kept.close()
            if not isinstance(answer, Basic.Ack):
                raise unroutable(publish.where)
            return True

    def _hear_lost(self, error: BaseException | None) -> None:
        """The channel is lost, and nobody knows whether the message came."""
        if self._ended is not None:
            raise self._ended
        if not self._is_repeating:
            raise unanswered(error or "the channel is closed")

    async def _ready(self) -> Underlay:
        while self._channel is None:
            if self._ended is not None:
                raise self._ended
            await self._changed.wait()
        return self._channel

    async def _reopen(self, connection: AbstractConnection) -> None:
        try:
            await self._open()
        except Exception:
            if self._connection is connection:
                self._channel = None  # The connection is being lost: the link tells when there is another.

    async def _open(self) -> None:
        connection = self._connection
        assert connection is not None
        kept, channel = await open_channel(connection, confirms=True)
        await self.set_up(channel)
        if self._connection is connection:
            self._kept, self._channel = kept, channel
            self._change()

    def _change(self) -> None:
        """Wakes all who wait for something to change."""
        self._changed.set()
        self._changed = asyncio.Event()
