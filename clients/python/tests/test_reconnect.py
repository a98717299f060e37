"""The connection comes again: topology, consumers, and what was not confirmed.

The broker is killed and started again, or its line is cut, at moments that the tests choose.
"""

from __future__ import annotations

import asyncio
import queue as queue_module
import threading
from collections.abc import Iterator

import pytest

from overtake import AsyncClient, AsyncDelivery, Client, ConnectionLost, Delivery, Priority

from .broker import Broker, Guest, Line
from .rows import row


def count_of(guest: Guest, queue: str, status: str) -> int:
    """How many messages are ready, or leased."""
    count: int = guest.ask("GET", f"/v1/queues/{queue}")["totals"][status]
    return count


def wait_for(guest: Guest, queue: str, status: str, wanted: int) -> None:
    """Waits until so many are."""
    while count_of(guest, queue, status) != wanted:
        pass  # Each look is a round trip.


def numbers(broker: Broker, count: int, kill_at: int) -> Iterator[str]:
    """Bodies; on the way the broker loses its power."""
    for number in range(count):
        if number == kill_at:
            broker.kill()
            broker.start()
        yield str(number)


@row("exactly once: what is published again after a loss is there once")
@row("reconnect: topology, consumers, what was not confirmed")
@pytest.mark.parametrize("exactly_once", [False, True])
def test_nothing_is_lost_when_the_broker_is_killed_plain(own_broker: Broker, exactly_once: bool) -> None:
    with Client(own_broker.amqp, http=own_broker.http, exactly_once=exactly_once) as client:
        client.declare_queue("q")
        consumer = client.consume("q")
        assert client.publish_all("q", numbers(own_broker, 2000, kill_at=1500)) == 2000
        check_bodies([taken.text for taken in (take(consumer.next()) for _ in range(2000))], exactly_once)


def take(delivery: Delivery) -> Delivery:
    """Acks it."""
    delivery.ack()
    return delivery


def check_bodies(bodies: list[str], exactly_once: bool) -> None:
    """Each once; or, where at least once is what is said, more of some and so not yet all."""
    if exactly_once:
        assert len(set(bodies)) == 2000


@row("exactly once: what is published again after a loss is there once")
@row("reconnect: topology, consumers, what was not confirmed")
@pytest.mark.parametrize("exactly_once", [False, True])
async def test_nothing_is_lost_when_the_broker_is_killed_asyncio(own_broker: Broker, exactly_once: bool) -> None:
    async with AsyncClient(own_broker.amqp, http=own_broker.http, exactly_once=exactly_once) as client:
        await client.declare_queue("q")
        assert await client.publish_all("q", numbers(own_broker, 2000, kill_at=1500)) == 2000
    with Guest(own_broker.http) as guest:
        count = count_of(guest, "q", "ready")
        assert count == 2000 if exactly_once else count >= 2000


@row("exactly once: what is published again after a loss is there once")
@row("reconnect: topology, consumers, what was not confirmed")
@pytest.mark.parametrize("exactly_once", [False, True])
def test_what_was_not_confirmed_is_published_again_plain(
    amqp: str, http: str, guest: Guest, queue: str, exactly_once: bool
) -> None:
    with Line(amqp) as line, Client(line.url, http=http, exactly_once=exactly_once) as client:
        client.publish(queue, b"")
        line.hold()
        publishing = threading.Thread(target=client.publish, args=(queue, b""))
        publishing.start()
        wait_for(guest, queue, "ready", 2)  # It came, and its confirm does not.
        line.cut()
        line.release()
        publishing.join()
        assert line.connections == 2
    assert count_of(guest, queue, "ready") == (2 if exactly_once else 3)


@row("exactly once: what is published again after a loss is there once")
@row("reconnect: topology, consumers, what was not confirmed")
@pytest.mark.parametrize("exactly_once", [False, True])
async def test_what_was_not_confirmed_is_published_again_asyncio(
    amqp: str, http: str, guest: Guest, queue: str, exactly_once: bool
) -> None:
    with Line(amqp) as line:
        async with AsyncClient(line.url, http=http, exactly_once=exactly_once) as client:
            await client.publish(queue, b"")
            line.hold()
            publishing = await client.send(queue, b"")
            await asyncio.to_thread(wait_for, guest, queue, "ready", 2)
            line.cut()
            line.release()
            await publishing
            assert line.connections == 2
    assert count_of(guest, queue, "ready") == (2 if exactly_once else 3)


@row("reconnect: topology, consumers, what was not confirmed")
def test_what_is_gone_is_declared_again_plain(own_broker: Broker) -> None:
    seen: queue_module.SimpleQueue[str] = queue_module.SimpleQueue()
    with Client(own_broker.amqp, http=own_broker.http) as client:
        client.declare_queue("q", scheme="signed")
        client.declare_exchange("x", "fanout")
        client.bind_queue("q", "x")
        with client.handle("q", lambda delivery: seen.put(delivery.text)):
            client.publish("", "before", exchange="x")
            assert seen.get() == "before"
            own_broker.kill()
            own_broker.start(empty=True)
            client.publish("", "after", exchange="x", priority=Priority.LOW)
            assert seen.get() == "after"


@row("reconnect: topology, consumers, what was not confirmed")
async def test_what_is_gone_is_declared_again_asyncio(own_broker: Broker) -> None:
    seen: asyncio.Queue[str] = asyncio.Queue()

    async def handler(delivery: AsyncDelivery) -> None:
        seen.put_nowait(delivery.text)

    async with AsyncClient(own_broker.amqp, http=own_broker.http) as client:
        await client.declare_queue("q", scheme="signed")
        await client.declare_exchange("x", "fanout")
        await client.bind_queue("q", "x")
        async with client.handle("q", handler):
            await client.publish("", "before", exchange="x")
            assert await seen.get() == "before"
            own_broker.kill()
            own_broker.start(empty=True)
            await client.publish("", "after", exchange="x", priority=Priority.LOW)
            assert await seen.get() == "after"


@row("reconnect: topology, consumers, what was not confirmed")
def test_what_is_there_stays_as_somebody_changed_it_plain(amqp: str, http: str, guest: Guest, queue: str) -> None:
    with Line(amqp) as line, Client(line.url, http=http) as client:
        client.declare_queue(queue, scheme="signed", max_active=0)
        guest.ask("PATCH", f"/v1/queues/{queue}", {"max_active": 9})
        line.cut()
        client.publish(queue, b"")
        assert guest.ask("GET", f"/v1/queues/{queue}")["settings"]["max_active"] == 9


@row("reconnect: topology, consumers, what was not confirmed")
def test_a_consumer_goes_on_and_what_it_held_comes_again_plain(
    amqp: str, http: str, queue: str, client: Client
) -> None:
    with Line(amqp) as line, Client(line.url, http=http) as other:
        consumer = other.consume(queue, window=2)
        client.publish_all(queue, ["1", "2", "3"])
        held = next(consumer)
        line.cut()
        # What was in its window may come twice, and nothing is left out.
        seen = set()
        while "3" not in seen:
            seen.add(take(next(consumer)).text)
        held.ack()  # It was put back meanwhile: nothing happens.
        assert (held.text, seen) == ("1", {"1", "2", "3"})


@row("reconnect: topology, consumers, what was not confirmed")
async def test_a_consumer_goes_on_and_what_it_held_comes_again_asyncio(
    amqp: str, http: str, queue: str, aclient: AsyncClient
) -> None:
    with Line(amqp) as line:
        async with AsyncClient(line.url, http=http) as other:
            consumer = other.consume(queue, window=2)
            await aclient.publish_all(queue, ["1", "2", "3"])
            held = await anext(consumer)
            line.cut()
            seen = set()
            while "3" not in seen:
                delivery = await anext(consumer)
                seen.add(delivery.text)
                await delivery.ack()
            await held.ack()  # It was put back meanwhile: nothing happens.
            assert (held.text, seen) == ("1", {"1", "2", "3"})


def close_by_management(guest: Guest, name: str) -> None:
    """As an operator does."""
    [connection] = [
        each["name"]
        for each in guest.ask("GET", "/api/connections")
        if each["client_properties"].get("connection_name") == name
    ]
    guest.ask("DELETE", f"/api/connections/{connection}")


@row("reconnect: topology, consumers, what was not confirmed")
def test_an_operator_may_close_a_connection_plain(amqp: str, http: str, guest: Guest, queue: str) -> None:
    with Client(amqp, http=http, name=queue) as client:
        consumer = client.consume(queue)
        client.publish(queue, "1")
        take(next(consumer))
        wait_for(guest, queue, "leased", 0)
        close_by_management(guest, queue)
        client.publish(queue, "2")
        assert take(next(consumer)).text == "2"


@row("reconnect: topology, consumers, what was not confirmed")
async def test_an_operator_may_close_a_connection_asyncio(amqp: str, http: str, guest: Guest, queue: str) -> None:
    async with AsyncClient(amqp, http=http, name=queue) as client:
        consumer = client.consume(queue)
        await client.publish(queue, "1")
        await (await anext(consumer)).ack()
        await asyncio.to_thread(wait_for, guest, queue, "leased", 0)
        close_by_management(guest, queue)
        await client.publish(queue, "2")
        delivery = await anext(consumer)
        assert delivery.text == "2"
        await delivery.ack()


@row("reconnect: topology, consumers, what was not confirmed")
def test_who_waits_for_an_answer_hears_that_it_cannot_come_plain(
    amqp: str, http: str, queue: str, client: Client
) -> None:
    errors: list[Exception] = []

    def ask(asking: Client) -> None:
        try:
            asking.request(queue, b"")
        except ConnectionLost as error:
            errors.append(error)

    with Line(amqp) as line, Client(line.url, http=http) as other:
        asking = threading.Thread(target=ask, args=(other,))
        asking.start()
        question = next(client.consume(queue))
        line.cut()
        asking.join()
        question.ack()
        with client.handle(queue, lambda _: b"answer"):
            assert other.request(queue, b"").text == "answer"
    assert "ask again" in str(errors[0])


@row("reconnect: topology, consumers, what was not confirmed")
async def test_who_waits_for_an_answer_hears_that_it_cannot_come_asyncio(
    amqp: str, http: str, queue: str, aclient: AsyncClient
) -> None:
    async def answer(_: AsyncDelivery) -> bytes:
        return b"answer"

    with Line(amqp) as line:
        async with AsyncClient(line.url, http=http) as other:
            asking = asyncio.create_task(other.request(queue, b""))
            question = await anext(aclient.consume(queue))
            line.cut()
            with pytest.raises(ConnectionLost, match="ask again"):
                await asking
            await question.ack()
            async with aclient.handle(queue, answer):
                assert (await other.request(queue, b"")).text == "answer"
