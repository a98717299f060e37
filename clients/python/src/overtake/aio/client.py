"""The asyncio client: the same words as the plain one, awaited."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from .. import rest, wire
from ..address import Address
from ..backoff import waits
from ..delivery import Received
from ..durations import Duration, milliseconds, seconds, whole_seconds
from ..errors import OvertakeError, Refused, closed
from ..message import Message
from ..numbering import Numbering
from ..topology import Topology
from .consumer import AsyncConsumer, AsyncDelivery, Subscription
from .handler import AsyncHandler, AsyncHandling
from .http import Http
from .lease import AsyncLease, Keeper
from .link import Link
from .publisher import Publish, Publisher
from .requests import Requests

__all__ = ["AsyncClient"]

log = logging.getLogger("overtake")

#: How often a declaration is tried again after a reconnect, while HTTP does not answer.
RESTORE_ATTEMPTS = 8


class AsyncClient:
    """A broker, connected to. `async with AsyncClient(url) as client:` connects, and closes it at the end.

    The connection comes again by itself: what was declared is declared again where it is gone, consumers go on, and what was not
    confirmed is published again. So a message is published at least once; with `exactly_once=True` it is numbered, and what is
    published again is taken once.
    """

    def __init__(
        self,
        url: str = "amqp://localhost",
        *,
        http: str | None = None,
        tls: ssl.SSLContext | None = None,
        external: bool = False,
        name: str = "overtake-client",
        heartbeat: Duration = 60,
        timeout: Duration | None = 30.0,
        connect_timeout: Duration = 10.0,
        login_retry: Duration | None = 30.0,
        exactly_once: bool = False,
        unconfirmed_max: int = 1000,
    ) -> None:
        """Of `amqp://user:password@host:port/vhost`, or `amqps://…`.

        `http` is where the broker's HTTP is, by which queues are declared and messages leased: `http://host:15672` of the same host
        unless it is said, or `https://host:15671` with `amqps`. `tls` trusts and shows certificates; `external=True` logs in with
        the one it shows. `name` is shown to people who look at the broker.

        Durations are text with a unit, such as `"250ms"` or `"1h30m"`, a `timedelta`, or a number: of seconds here, of milliseconds
        in arguments whose names end with `_ms`. `timeout` is how long a method waits, reconnects included, before it raises
        `TimedOut`; None is for ever. `connect_timeout` bounds one attempt to connect, and `heartbeat` is in whole seconds. Once it
        was logged in, a login that the broker refuses is tried again after `login_retry`; None: the refusal ends the client, and
        whoever waits hears `LoginRefused`. A first login that is refused is always raised at once. `unconfirmed_max` bounds what `send` and
        `publish_all` have on their way.
        """
        self._address = Address.parse(url, http)
        if tls is None and self._address.is_tls:
            tls = ssl.create_default_context()
        self._tls = tls
        self._name = name
        self._external = external
        self._heartbeat = whole_seconds(heartbeat, "heartbeat")
        self._timeout = seconds(timeout, "timeout")
        self._connect_timeout = seconds(connect_timeout, "connect_timeout")
        self._login_retry = seconds(login_retry, "login_retry")
        self._topology = Topology()
        self._numbering = Numbering() if exactly_once else None
        self._unconfirmed_max = unconfirmed_max
        self._open: _Open | None = None

    async def connect(self) -> None:
        """Connects, as `async with` does."""
        http = Http(self._address, self._tls, self._timeout, external=self._external)
        link = Link(
            self._address,
            tls=self._tls if self._address.is_tls else None,
            name=self._name,
            heartbeat=self._heartbeat,
            external=self._external,
            connect_timeout=self._connect_timeout,
            login_retry=self._login_retry,
            restore=self._restore,
        )
        try:
            await link.start()
        except BaseException:
            await http.close()
            raise
        publisher = Publisher(link, timeout=self._timeout, numbering=self._numbering)
        self._open = _Open(http, link, publisher, self._unconfirmed_max)
        await link.attach(publisher)

    async def declare_queue(self, name: str, **settings: Any) -> None:
        """Makes a queue, or checks the settings of one: `await declare_queue("jobs", scheme="signed", delivery_limit=3)`.

        The settings are those of HTTP. In a new queue one that is left out has its default; one that is there is not
        changed, and `Refused` with code 409 names each setting that has another value.
        """
        call = rest.queue_settings(name, settings)
        await self._up.http.ask(call)
        self._topology.queue(name, call)

    async def declare_exchange(self, name: str, kind: str = "direct", **settings: Any) -> None:
        """Makes an exchange: `direct`, `fanout`, `topic`, `headers` or `consistent-hash`; the settings are those of HTTP."""
        call = rest.exchange_settings(name, kind, settings)
        await self._up.http.ask(call)
        self._topology.exchange(name, call)

    async def bind_queue(
        self,
        queue: str,
        exchange: str,
        routing_key: str = "",
        *,
        headers: dict[str, Any] | None = None,
        match: str | None = None,
    ) -> None:
        """Has an exchange give a queue what comes with this routing key, or with these headers."""
        call = rest.binding(queue, exchange, routing_key, headers, match)
        await self._up.http.ask(call)
        self._topology.binding(queue, exchange, call)

    async def delete_queue(self, name: str) -> None:
        """Deletes a queue, and what is in it."""
        await self._up.http.ask(rest.delete_queue(name))
        self._topology.forget_queue(name)

    async def delete_exchange(self, name: str) -> None:
        """Deletes an exchange, and its bindings."""
        await self._up.http.ask(rest.delete_exchange(name))
        self._topology.forget_exchange(name)

    async def publish(
        self,
        queue: str,
        body: bytes | str,
        *,
        priority: int | None = None,
        exchange: str = "",
        headers: Mapping[str, Any] | None = None,
        ttl_ms: Duration | None = None,
        id: str | None = None,  # noqa: A002 - the word for it, in every interface
        key: str | None = None,
        key_weight: int | None = None,
        correlation_id: str | None = None,
        reply_to: str | None = None,
        content_type: str | None = None,
        kind: str | None = None,
        delay_ms: Duration | None = None,
        user_id: str | None = None,
        mandatory: bool | None = None,
    ) -> None:
        """Publishes a message, and returns once it is durable. With an `exchange`, `queue` is the routing key.

        Raises `NotConfirmed` if the broker did not take it, and `Unroutable` if there is no queue for it:
        of a message to an exchange only if it is `mandatory`.
        """
        message = Message(
            body,
            priority=priority,
            headers=headers,
            ttl_ms=ttl_ms,
            id=id,
            key=key,
            key_weight=key_weight,
            correlation_id=correlation_id,
            reply_to=reply_to,
            content_type=content_type,
            kind=kind,
            delay_ms=delay_ms,
            user_id=user_id,
            mandatory=mandatory,
        )
        await self._up.publisher.publish(Publish(message, exchange, queue))

    async def send(
        self, queue: str, message: Message | bytes | str, *, exchange: str = "", priority: int | None = None
    ) -> asyncio.Future[None]:
        """Publishes without waiting for the confirm, only for room: no more than `unconfirmed_max` are on their way.

        The answer is done once the message is durable; await it to hear of an error. `priority` is for a body that is no `Message`.
        """
        if not isinstance(message, Message):
            message = Message(message, priority=priority)
        elif priority is not None:
            raise ValueError("a Message says its priority itself: Message(body, priority=…)")
        return await self._send(Publish(message, exchange, queue))

    async def publish_all(self, queue: str, messages: Iterable[Message | bytes | str], *, exchange: str = "") -> int:
        """Publishes many, and returns how many once all are durable.

        They are confirmed together, so it is much faster than one by one. If some fail, the others are published all the same, and the
        first error is raised.
        """
        count = 0
        open_ones: set[asyncio.Future[None]] = set()
        failed: list[tuple[int, BaseException]] = []

        def on_done(at: int, sent: asyncio.Future[None]) -> None:
            open_ones.discard(sent)
            error = sent.exception() if not sent.cancelled() else closed()
            if error is not None:
                failed.append((at, error))

        for each in messages:
            message = each if isinstance(each, Message) else Message(each)
            sent = await self._send(Publish(message, exchange, queue))
            open_ones.add(sent)
            sent.add_done_callback(lambda done, at=count: on_done(at, done))  # type: ignore[misc]
            count += 1
        while open_ones:
            await asyncio.wait(open_ones)
        if failed:
            at, error = min(failed, key=lambda each: each[0])
            if count > 1:
                error.add_note(f"message {at} of these {count}, and {len(failed) - 1} more")
            raise error
        return count

    def consume(
        self,
        queue: str,
        window: int = 100,
        *,
        urgent_credit: Mapping[str, int] | None = None,
        consumer_priority: int | None = None,
        exclusive: bool = False,
    ) -> AsyncConsumer:
        """Messages of a queue, as they come: `async for delivery in client.consume("jobs"):`.

        At most `window` are out at once; with a window of 1 no message overtakes one that is less urgent too late. `urgent_credit`,
        such as `{"from": 50, "messages": 1}`, is further window for messages of that priority and more.
        Of consumers of unlike `consumer_priority` the greater is served first. `exclusive` wants to be the only one.
        """
        return AsyncConsumer(
            Subscription(self._up.link, queue, window, wire.consuming(urgent_credit, consumer_priority), exclusive),
            self._reply,
        )

    def handle(
        self,
        queue: str,
        handler: AsyncHandler,
        *,
        window: int | None = None,
        concurrency: int = 1,
        urgent_credit: Mapping[str, int] | None = None,
    ) -> AsyncHandling:
        """Has each message of a queue handled, `concurrency` at a time, in a scope of its priority.

        What the handler returns from is acked; if it returns bytes or str, they go to whoever asked. `Reject` rejects; any other
        exception nacks, and is logged; `SystemExit`, `KeyboardInterrupt` and their like end the handling, too, and are raised when its
        scope is left. The window is `concurrency` unless it is said. It goes on until it is stopped.
        """
        consumer = self.consume(queue, window or concurrency, urgent_credit=urgent_credit)
        return AsyncHandling(consumer, handler, concurrency)

    async def lease(
        self,
        queue: str,
        max: int = 1,  # noqa: A002
        *,
        wait_ms: Duration = 0,
        lease_ms: Duration = 30_000,
    ) -> list[AsyncLease]:
        """Leases messages over HTTP: at once what is there, else the first that comes within `wait_ms`; none if none came.

        A number is in milliseconds.

        A lease is extended by itself until it is settled, or this client is closed. `lease_ms` is how long it would last without:
        so long a message waits for others if this process dies.
        """
        up, left_ms = self._up, milliseconds(wait_ms, "wait_ms")
        length_ms = milliseconds(lease_ms, "lease_ms")
        while True:
            now_ms = min(left_ms, rest.WAIT_MS_MAX)
            answer = await up.http.ask(rest.leases(queue, max, now_ms, length_ms, self._name), now_ms / 1000)
            left_ms -= now_ms
            if answer["messages"] or left_ms <= 0:
                break
        leases = [AsyncLease(up.http, up.keeper, queue, length_ms, each) for each in answer["messages"]]
        up.keeper.hold(leases)
        return leases

    async def request(
        self,
        queue: str,
        body: bytes | str,
        *,
        timeout: Duration | None = None,
        priority: int | None = None,
        exchange: str = "",
        headers: Mapping[str, Any] | None = None,
        ttl_ms: Duration | None = None,
        key: str | None = None,
        content_type: str | None = None,
    ) -> AsyncDelivery:
        """Asks, and returns the answer. After `timeout` (a number is in seconds) without one, else the client's: `TimedOut`."""
        up = self._up
        if up.requests is None:
            up.requests = Requests(up.link, self._reply, timeout=self._timeout)
            await up.link.attach(up.requests)
        message = Message(body, priority=priority, headers=headers, ttl_ms=ttl_ms, key=key, content_type=content_type)
        return await up.requests.ask(
            queue, message, exchange, self._timeout if timeout is None else seconds(timeout, "timeout")
        )

    async def close(self) -> None:
        """Closes it: consumers end, and what is not settled is put back."""
        up, self._open = self._open, None
        if up is not None:
            await up.keeper.close()
            await up.link.close()
            await up.http.close()

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def _up(self) -> _Open:
        if self._open is None:
            raise closed()
        return self._open

    async def _send(self, publish: Publish) -> asyncio.Future[None]:
        up = self._up
        await up.room.acquire()
        sent = asyncio.create_task(up.publisher.publish(publish))
        sent.add_done_callback(up.on_sent)
        return sent

    async def _reply(self, asked: Received, body: bytes | str, priority: int | None) -> None:
        if asked.reply_to is None:
            raise ValueError("nobody waits for an answer to this message: it has no reply_to")
        await self.publish(asked.reply_to, body, priority=priority, correlation_id=asked.correlation_id)

    async def _restore(self) -> None:
        """Declares again what is gone, before anything goes on."""
        up = self._up
        for _, wait in zip(range(RESTORE_ATTEMPTS), waits(), strict=False):
            try:
                await _restore_over(up.http, self._topology)
            except OvertakeError as error:
                log.warning("what was declared is not declared again yet: %s", error)
                await asyncio.sleep(wait)
            else:
                return


class _Open:
    """What there is while the client is connected."""

    def __init__(self, http: Http, link: Link, publisher: Publisher, unconfirmed_max: int) -> None:
        self.http = http
        self.link = link
        self.publisher = publisher
        self.keeper = Keeper(http)
        self.requests: Requests | None = None
        self.room = asyncio.Semaphore(unconfirmed_max)

    def on_sent(self, _: asyncio.Future[None]) -> None:
        """There is room for another."""
        self.room.release()


async def _restore_over(http: Http, topology: Topology) -> None:
    """Declares again what is gone."""
    restoring = topology.restore()
    try:
        call = next(restoring)
        while True:
            call = restoring.send(await _is_done(http, call))
    except StopIteration:
        pass


async def _is_done(http: Http, call: rest.Call) -> bool:
    try:
        await http.ask(call)
    except Refused as error:
        if call.method == "GET" and error.code in rest.NOT_THERE:
            return False
        raise
    return True
