"""The plain client: every method waits until what it is for has happened. Any thread may call any of them."""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from types import TracebackType
from typing import Any, Self

from . import rest, wire
from .address import Address
from .backoff import waits
from .consumer import Consumer, Delivery, Subscription
from .delivery import Received
from .durations import Duration, milliseconds, seconds, whole_seconds
from .errors import OvertakeError, Refused
from .handler import Handler, Handling
from .http import Http
from .lease import Keeper, Lease
from .link import Link
from .message import Message
from .numbering import Numbering
from .publisher import Publish, Publisher, Waiter
from .requests import Requests
from .topology import Topology

__all__ = ["Client"]

log = logging.getLogger("overtake")

#: So many messages of a `publish_all` are on their way at once, twice.
PORTION = 512

#: How often a declaration is tried again after a reconnect, while HTTP does not answer.
RESTORE_ATTEMPTS = 8


class Client:
    """A broker, connected to. `with Client(url) as client:` closes it at the end.

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
    ) -> None:
        """Connects to `amqp://user:password@host:port/vhost`, or `amqps://…`.

        `http` is where the broker's HTTP is, by which queues are declared and messages leased: `http://host:15672` of the same host
        unless it is said, or `https://host:15671` with `amqps`. `tls` trusts and shows certificates; `external=True` logs in with
        the one it shows. `name` is shown to people who look at the broker.

        Durations are text with a unit, such as `"250ms"` or `"1h30m"`, a `timedelta`, or a number: of seconds here, of milliseconds
        in arguments whose names end with `_ms`. `timeout` is how long a method waits, reconnects included, before it raises
        `TimedOut`; None is for ever. `connect_timeout` bounds one attempt to connect, and `heartbeat` is in whole seconds. Once it
        was logged in, a login that the broker refuses is tried again after `login_retry`; None: the refusal ends the client, and
        whoever waits hears `LoginRefused`. A first login that is refused is always raised at once.
        """
        self._address = Address.parse(url, http)
        if tls is None and self._address.is_tls:
            tls = ssl.create_default_context()
        self._name = name
        self._timeout = seconds(timeout, "timeout")
        self._topology = Topology()
        self._http = Http(self._address, tls, self._timeout, external=external)
        self._keeper = Keeper(self._http, name)
        self._link = Link(
            self._address,
            tls=tls if self._address.is_tls else None,
            name=name,
            heartbeat=whole_seconds(heartbeat, "heartbeat"),
            external=external,
            connect_timeout=seconds(connect_timeout, "connect_timeout"),
            login_retry=seconds(login_retry, "login_retry"),
            restore=self._restore,
        )
        self._link.start()
        self._publisher = Publisher(self._link, numbering=Numbering() if exactly_once else None)
        self._link.attach(self._publisher)
        self._requests: Requests | None = None
        self._requests_lock = threading.Lock()

    def declare_queue(self, name: str, **settings: Any) -> None:
        """Makes a queue, or checks the settings of one: `declare_queue("jobs", scheme="signed", delivery_limit=3)`.

        The settings are those of HTTP. In a new queue one that is left out has its default; one that is there is not
        changed, and `Refused` with code 409 names each setting that has another value.
        """
        call = rest.queue_settings(name, settings)
        self._http.ask(call)
        self._topology.queue(name, call)

    def declare_exchange(self, name: str, kind: str = "direct", **settings: Any) -> None:
        """Makes an exchange: `direct`, `fanout`, `topic`, `headers` or `consistent-hash`; the settings are those of HTTP."""
        call = rest.exchange_settings(name, kind, settings)
        self._http.ask(call)
        self._topology.exchange(name, call)

    def bind_queue(
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
        self._http.ask(call)
        self._topology.binding(queue, exchange, call)

    def delete_queue(self, name: str) -> None:
        """Deletes a queue, and what is in it."""
        self._http.ask(rest.delete_queue(name))
        self._topology.forget_queue(name)

    def delete_exchange(self, name: str) -> None:
        """Deletes an exchange, and its bindings."""
        self._http.ask(rest.delete_exchange(name))
        self._topology.forget_exchange(name)

    def publish(
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
        waiter = Waiter(1)
        self._publisher.publish((Publish(message, exchange, queue, waiter),), waiter, self._timeout)

    def publish_all(self, queue: str, messages: Iterable[Message | bytes | str], *, exchange: str = "") -> int:
        """Publishes many, and returns how many once all are durable.

        They are confirmed together, so it is much faster than one by one. If some fail, the others are published all the same, as far
        as they were on their way, and the first error is raised.
        """
        rest_of = (each if isinstance(each, Message) else Message(each) for each in messages)
        before: tuple[list[Publish], Waiter] | None = None
        count = 0
        while portion := list(islice(rest_of, PORTION)):
            sent = self._send(portion, queue, exchange)
            if before is not None:
                self._publisher.settle(*before, self._timeout)
            before, count = sent, count + len(portion)
        if before is not None:
            self._publisher.settle(*before, self._timeout)
        return count

    def consume(
        self,
        queue: str,
        window: int = 100,
        *,
        urgent_credit: Mapping[str, int] | None = None,
        consumer_priority: int | None = None,
        exclusive: bool = False,
    ) -> Consumer:
        """Messages of a queue, as they come: `for delivery in client.consume("jobs"):`.

        At most `window` are out at once; with a window of 1 no message overtakes one that is less urgent too late. `urgent_credit`,
        such as `{"from": 50, "messages": 1}`, is further window for messages of that priority and more.
        Of consumers of unlike `consumer_priority` the greater is served first. `exclusive` wants to be the only one.
        """
        arguments = wire.consuming(urgent_credit, consumer_priority)
        return Consumer(Subscription(self._link, queue, window, arguments, exclusive), self._reply)

    def handle(
        self,
        queue: str,
        handler: Handler,
        *,
        window: int | None = None,
        concurrency: int = 1,
        urgent_credit: Mapping[str, int] | None = None,
    ) -> Handling:
        """Has each message of a queue handled, by `concurrency` threads, in a scope of its priority.

        What the handler returns from is acked; if it returns bytes or str, they go to whoever asked. `Reject` rejects; any other
        exception nacks, and is logged; `SystemExit`, `KeyboardInterrupt` and their like end the handling, too, and are raised when its
        scope is left. The window is `concurrency` unless it is said. It goes on until it is stopped.
        """
        consumer = self.consume(queue, window or concurrency, urgent_credit=urgent_credit)
        return Handling(consumer, handler, concurrency, f"{self._name} {queue}")

    def lease(self, queue: str, max: int = 1, *, wait_ms: Duration = 0, lease_ms: Duration = 30_000) -> list[Lease]:  # noqa: A002
        """Leases messages over HTTP: at once what is there, else the first that comes within `wait_ms`; none if none came.

        A number is in milliseconds.

        A lease is extended by itself until it is settled, or this client is closed. `lease_ms` is how long it would last without:
        so long a message waits for others if this process dies.
        """
        left_ms, length_ms = milliseconds(wait_ms, "wait_ms"), milliseconds(lease_ms, "lease_ms")
        while True:
            now_ms = min(left_ms, rest.WAIT_MS_MAX)
            answer = self._http.ask(rest.leases(queue, max, now_ms, length_ms, self._name), now_ms / 1000)
            left_ms -= now_ms
            if answer["messages"] or left_ms <= 0:
                break
        leases = [Lease(self._http, self._keeper, queue, length_ms, each) for each in answer["messages"]]
        self._keeper.hold(leases)
        return leases

    def request(
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
    ) -> Delivery:
        """Asks, and returns the answer. After `timeout` (a number is in seconds) without one, else the client's: `TimedOut`."""
        with self._requests_lock:
            if self._requests is None:
                self._requests = Requests(self._link, self._reply)
            requests = self._requests
        message = Message(body, priority=priority, headers=headers, ttl_ms=ttl_ms, key=key, content_type=content_type)
        return requests.ask(queue, message, exchange, self._timeout if timeout is None else seconds(timeout, "timeout"))

    def close(self) -> None:
        """Closes it: consumers end, and what is not settled is put back."""
        self._keeper.close()
        self._link.close()
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, messages: Sequence[Message], queue: str, exchange: str) -> tuple[list[Publish], Waiter]:
        waiter = Waiter(len(messages))
        publishes = [Publish(message, exchange, queue, waiter) for message in messages]
        self._publisher.send(publishes)
        return publishes, waiter

    def _reply(self, asked: Received, body: bytes | str, priority: int | None) -> None:
        if asked.reply_to is None:
            raise ValueError("nobody waits for an answer to this message: it has no reply_to")
        self.publish(asked.reply_to, body, priority=priority, correlation_id=asked.correlation_id)

    def _restore(self) -> None:
        """Declares again what is gone, on a thread of its own, before anything goes on."""
        for _, wait in zip(range(RESTORE_ATTEMPTS), waits(), strict=False):
            try:
                _restore_over(self._http, self._topology)
            except OvertakeError as error:
                log.warning("what was declared is not declared again yet: %s", error)
                threading.Event().wait(wait)
            else:
                return


def _restore_over(http: Http, topology: Topology) -> None:
    """Declares again what is gone."""
    restoring = topology.restore()
    try:
        call = next(restoring)
        while True:
            call = restoring.send(_is_done(http, call))
    except StopIteration:
        pass


def _is_done(http: Http, call: rest.Call) -> bool:
    try:
        http.ask(call)
    except Refused as error:
        if call.method == "GET" and error.code in rest.NOT_THERE:
            return False
        raise
    return True
