"""Logins that fail: only a word of the broker is a refusal, and a client that was logged in tries again."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Iterator

import pytest
from aio_pika.abc import AbstractConnection

from overtake import AsyncClient, Client, ConnectionLost, LoginRefused, OvertakeError, TimedOut
from overtake.aio.consumer import Subscription

from .broker import Guest, Line
from .cutting import CUTS, START, TUNE, CuttingLine, close
from .rows import row
from .test_reconnect import wait_for

REFUSALS = {
    "the password is wrong": (START, close(403, "ACCESS_REFUSED - login refused (PLAIN)")),
    "the virtual host is gone": (TUNE, close(530, "NOT_ALLOWED - vhost 'v' not found")),
}

SOON = 0.05


def refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines that this library logged at ERROR."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "overtake" and record.levelno == logging.ERROR
    ]


@row("reconnect: topology, consumers, what was not confirmed")
@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS.keys())
def test_a_login_that_is_cut_is_tried_again_plain(
    amqp: str, http: str, queue: str, cut: tuple[float, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    with CuttingLine(amqp) as line, Client(line.url, http=http) as client:
        line.cut_next(cut, cut)
        line.cut()
        client.publish(queue, b"1")
        assert line.connections == 4
    assert refusals(caplog) == []


@row("reconnect: topology, consumers, what was not confirmed")
@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS.keys())
async def test_a_login_that_is_cut_is_tried_again_asyncio(
    amqp: str, http: str, queue: str, cut: tuple[float, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    with CuttingLine(amqp) as line:
        async with AsyncClient(line.url, http=http) as client:
            line.cut_next(cut, cut)
            line.cut()
            await client.publish(queue, b"1")
            assert line.connections == 4
    assert refusals(caplog) == []


@row("reconnect: topology, consumers, what was not confirmed")
@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS.keys())
def test_a_login_that_is_refused_later_is_tried_again_plain(
    amqp: str, http: str, guest: Guest, queue: str, refusal: tuple[float, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    with CuttingLine(amqp) as line, Client(line.url, http=http, login_retry=SOON) as client:
        consumer = client.consume(queue)
        client.publish(queue, b"1")
        next(consumer).ack()
        wait_for(guest, queue, "leased", 0)
        line.cut_next(refusal, refusal)
        line.cut()
        client.publish(queue, b"2")
        assert next(consumer).text == "2"
        assert line.connections == 4
    [said] = refusals(caplog)
    assert "does not let guest in" in said


@row("reconnect: topology, consumers, what was not confirmed")
@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS.keys())
async def test_a_login_that_is_refused_later_is_tried_again_asyncio(
    amqp: str, http: str, guest: Guest, queue: str, refusal: tuple[float, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    with CuttingLine(amqp) as line:
        async with AsyncClient(line.url, http=http, login_retry=SOON) as client:
            consumer = client.consume(queue)
            await client.publish(queue, b"1")
            await (await anext(consumer)).ack()
            await asyncio.to_thread(wait_for, guest, queue, "leased", 0)
            line.cut_next(refusal, refusal)
            line.cut()
            await client.publish(queue, b"2")
            delivery = await anext(consumer)
            assert delivery.text == "2"
            await delivery.ack()
            assert line.connections == 4
    [said] = refusals(caplog)
    assert "does not let guest in" in said


@row("errors by type")
@pytest.mark.parametrize(
    ("cut", "error"),
    [
        *((REFUSALS[name], LoginRefused) for name in REFUSALS),
        (CUTS["after start-ok"], ConnectionLost),
        (CUTS["after tune"], ConnectionLost),
        (CUTS["the broker is stopping"], ConnectionLost),
        (CUTS["logins are crowded"], OvertakeError),
    ],
    ids=[*REFUSALS, "after start-ok", "after tune", "the broker is stopping", "logins are crowded"],
)
def test_a_first_login_says_at_once_why_it_failed_plain(
    amqp: str, http: str, cut: tuple[float, bytes], error: type[Exception]
) -> None:
    with CuttingLine(amqp) as line:
        line.cut_next(cut)
        with pytest.raises(error) as caught:
            Client(line.url, http=http)
        assert isinstance(caught.value, LoginRefused) == (error is LoginRefused)
        assert line.connections == 1


@row("errors by type")
@pytest.mark.parametrize(
    ("cut", "error"),
    [
        *((REFUSALS[name], LoginRefused) for name in REFUSALS),
        (CUTS["after start-ok"], ConnectionLost),
        (CUTS["after tune"], ConnectionLost),
        (CUTS["the broker is stopping"], ConnectionLost),
        (CUTS["logins are crowded"], OvertakeError),
    ],
    ids=[*REFUSALS, "after start-ok", "after tune", "the broker is stopping", "logins are crowded"],
)
async def test_a_first_login_says_at_once_why_it_failed_asyncio(
    amqp: str, http: str, cut: tuple[float, bytes], error: type[Exception]
) -> None:
    with CuttingLine(amqp) as line:
        line.cut_next(cut)
        with pytest.raises(error) as caught:
            await AsyncClient(line.url, http=http).connect()
        assert isinstance(caught.value, LoginRefused) == (error is LoginRefused)
        assert line.connections == 1


@pytest.fixture
def user(guest: Guest, name: str) -> Iterator[str]:
    """A user whose password may be changed; it is `old` first."""
    guest.ask("PUT", f"/v1/users/{name}", {"password": "old"})
    guest.ask("PUT", f"/v1/users/{name}/permissions/%2F", {"configure": ".*", "write": ".*", "read": ".*"})
    yield name
    guest.ask("DELETE", f"/v1/users/{name}")


@row("reconnect: topology, consumers, what was not confirmed")
def test_a_password_that_is_wrong_for_a_while_ends_nothing_plain(
    amqp: str, http: str, guest: Guest, queue: str, user: str
) -> None:
    url = "://" + f"{user}:old@"
    with Line(amqp) as line, Client(line.url.replace("://", url), http=http, login_retry=SOON) as client:
        consumer = client.consume(queue)
        client.publish(queue, b"1")
        next(consumer).ack()
        wait_for(guest, queue, "leased", 0)
        guest.ask("PUT", f"/v1/users/{user}", {"password": "new"})
        line.cut()
        publishing = threading.Thread(target=client.publish, args=(queue, b"2"))
        publishing.start()
        line.wait_for_connections(3)
        guest.ask("PUT", f"/v1/users/{user}", {"password": "old"})
        publishing.join()
        assert next(consumer).text == "2"


@row("reconnect: topology, consumers, what was not confirmed")
async def test_a_password_that_is_wrong_for_a_while_ends_nothing_asyncio(
    amqp: str, http: str, guest: Guest, queue: str, user: str
) -> None:
    url = "://" + f"{user}:old@"
    with Line(amqp) as line:
        async with AsyncClient(line.url.replace("://", url), http=http, login_retry=SOON) as client:
            consumer = client.consume(queue)
            await client.publish(queue, b"1")
            await (await anext(consumer)).ack()
            await asyncio.to_thread(wait_for, guest, queue, "leased", 0)
            guest.ask("PUT", f"/v1/users/{user}", {"password": "new"})
            line.cut()
            publishing = asyncio.create_task(client.publish(queue, b"2"))
            await asyncio.to_thread(line.wait_for_connections, 3)
            guest.ask("PUT", f"/v1/users/{user}", {"password": "old"})
            await publishing
            delivery = await anext(consumer)
            assert delivery.text == "2"
            await delivery.ack()


@row("reconnect: topology, consumers, what was not confirmed")
def test_without_login_retry_a_refusal_ends_the_client_plain(amqp: str, http: str, queue: str) -> None:
    with CuttingLine(amqp) as line, Client(line.url, http=http, login_retry=None) as client:
        consumer = client.consume(queue)
        client.publish(queue, b"1")
        next(consumer).ack()
        line.cut_next(REFUSALS["the password is wrong"])
        line.cut()
        with pytest.raises(LoginRefused):
            next(consumer)
        with pytest.raises(LoginRefused):
            client.publish(queue, b"2")


@row("reconnect: topology, consumers, what was not confirmed")
async def test_without_login_retry_a_refusal_ends_the_client_asyncio(amqp: str, http: str, queue: str) -> None:
    with CuttingLine(amqp) as line:
        async with AsyncClient(line.url, http=http, login_retry=None) as client:
            consumer = client.consume(queue)
            await client.publish(queue, b"1")
            await (await anext(consumer)).ack()
            line.cut_next(REFUSALS["the password is wrong"])
            line.cut()
            with pytest.raises(LoginRefused):
                await anext(consumer)
            with pytest.raises(LoginRefused):
                await client.publish(queue, b"2")


@row("reconnect: topology, consumers, what was not confirmed")
def test_who_gives_up_hears_that_the_login_is_refused_plain(amqp: str, http: str, queue: str) -> None:
    with CuttingLine(amqp) as line, Client(line.url, http=http, timeout=1, login_retry=600) as client:
        line.cut_next(REFUSALS["the password is wrong"])
        line.cut()
        line.wait_for_cuts(1)
        with pytest.raises(TimedOut, match="does not let guest in"):
            client.publish(queue, b"1")


@row("reconnect: topology, consumers, what was not confirmed")
async def test_who_gives_up_hears_that_the_login_is_refused_asyncio(amqp: str, http: str, queue: str) -> None:
    with CuttingLine(amqp) as line:
        async with AsyncClient(line.url, http=http, timeout=1, login_retry=600) as client:
            line.cut_next(REFUSALS["the password is wrong"])
            line.cut()
            await asyncio.to_thread(line.wait_for_cuts, 1)
            with pytest.raises(TimedOut, match="does not let guest in"):
                await client.publish(queue, b"1")


@row("reconnect: topology, consumers, what was not confirmed")
async def test_an_error_as_the_connection_comes_again_does_not_end_the_client_asyncio(
    amqp: str, http: str, queue: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begin, fails = Subscription.on_up, iter([True])

    async def on_up(subscription: Subscription, connection: AbstractConnection) -> None:
        if next(fails, False):
            raise RuntimeError("as it may")
        await begin(subscription, connection)

    with Line(amqp) as line:
        async with AsyncClient(line.url, http=http) as client:
            consumer = client.consume(queue)
            await consumer.wait_until_consuming()
            monkeypatch.setattr(Subscription, "on_up", on_up)
            line.cut()
            await client.publish(queue, b"1")
            delivery = await anext(consumer)
            await delivery.ack()
    [said] = refusals(caplog)
    assert "as it may" in said


class Gibberish(threading.Thread):
    """An HTTP server in the broker's place that says it speaks JSON, and does not."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def run(self) -> None:
        while True:
            ours, _ = self.listener.accept()
            ours.recv(65536)
            ours.sendall(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n<>"
            )
            ours.close()


@row("reconnect: topology, consumers, what was not confirmed")
def test_what_answers_in_place_of_http_does_not_end_the_client_plain(
    amqp: str, http: str, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overtake.client.RESTORE_ATTEMPTS", 1)
    proxy = Gibberish()
    proxy.start()
    with Line(amqp) as line, Client(line.url, http=http) as client:
        client.declare_queue(queue, scheme="signed")
        client._http._client.base_url = proxy.url
        line.cut()
        client.publish(queue, b"1")


@row("reconnect: topology, consumers, what was not confirmed")
async def test_what_answers_in_place_of_http_does_not_end_the_client_asyncio(
    amqp: str, http: str, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overtake.aio.client.RESTORE_ATTEMPTS", 1)
    proxy = Gibberish()
    proxy.start()
    with Line(amqp) as line:
        async with AsyncClient(line.url, http=http) as client:
            await client.declare_queue(queue, scheme="signed")
            client._up.http._client.base_url = proxy.url
            line.cut()
            await client.publish(queue, b"1")
