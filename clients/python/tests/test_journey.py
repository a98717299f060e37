"""The priority travels in the message: over three hops, a retry, a dead letter and its replay, in both clients and between them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from itertools import pairwise

import pytest

from overtake import AsyncClient, AsyncDelivery, Client, Delivery, Priority, current_priority
from overtake.priority import resolved

from .broker import Guest

PRIORITIES = [None, 0, 7, 300, Priority.LOW, -(2**31), 2**31 - 1]


@pytest.fixture
def hops(client: Client, name: str) -> Iterator[list[str]]:
    """Four queues, one after the other."""
    queues = [f"{name}-{number}" for number in range(4)]
    for queue in queues:
        client.declare_queue(queue, scheme="signed", delivery_limit=3)
    yield queues
    for queue in queues:
        client.delete_queue(queue)


class Hop:
    """Passes on what comes, says nothing about the priority, and fails the first time."""

    def __init__(self, source: str, target: str) -> None:
        self.source = source
        self.target = target
        self.seen: list[int | None] = []

    def plain(self, client: Client, delivery: Delivery) -> None:
        """As a handler."""
        self._look(delivery)
        client.publish(self.target, delivery.body)

    async def asyncio(self, client: AsyncClient, delivery: AsyncDelivery) -> None:
        """As a handler, in a task of a task."""
        self._look(delivery)
        await asyncio.create_task(client.publish(self.target, delivery.body))

    def _look(self, delivery: Delivery | AsyncDelivery) -> None:
        self.seen += [delivery.priority, resolved(None)]
        if delivery.count == 1:
            raise RuntimeError("the first attempt fails")


@pytest.mark.parametrize("priority", PRIORITIES)
def test_three_hops_each_with_a_retry_plain(client: Client, hops: list[str], priority: int | None) -> None:
    passed = [Hop(source, target) for source, target in pairwise(hops)]
    handlings = [client.handle(hop.source, lambda delivery, hop=hop: hop.plain(client, delivery)) for hop in passed]  # type: ignore[misc]
    client.publish(hops[0], b"", priority=priority)
    end = next(client.consume(hops[-1]))
    end.ack()
    for handling in handlings:
        handling.stop()
    assert end.priority == priority
    assert [hop.seen for hop in passed] == [[priority] * 4] * 3


@pytest.mark.parametrize("priority", PRIORITIES)
async def test_three_hops_each_with_a_retry_asyncio(
    aclient: AsyncClient, hops: list[str], priority: int | None
) -> None:
    passed = [Hop(source, target) for source, target in pairwise(hops)]
    handlings = [
        aclient.handle(hop.source, lambda delivery, hop=hop: hop.asyncio(aclient, delivery))  # type: ignore[misc]
        for hop in passed
    ]
    await aclient.publish(hops[0], b"", priority=priority)
    end = await anext(aclient.consume(hops[-1]))
    await end.ack()
    for handling in handlings:
        await handling.stop()
    assert end.priority == priority
    assert [hop.seen for hop in passed] == [[priority] * 4] * 3


@pytest.mark.parametrize("priority", PRIORITIES)
async def test_three_hops_from_one_client_to_the_other_and_a_lease(
    client: Client, aclient: AsyncClient, hops: list[str], priority: int | None
) -> None:
    one, two = Hop(hops[0], hops[1]), Hop(hops[1], hops[2])
    with client.handle(one.source, lambda delivery: one.plain(client, delivery)):
        async with aclient.handle(two.source, lambda delivery: two.asyncio(aclient, delivery)):
            await aclient.publish(hops[0], b"", priority=priority)
            [lease] = await aclient.lease(hops[2], wait_ms=60_000)
            async with lease:
                await aclient.publish(hops[3], b"")
    end = await anext(aclient.consume(hops[3]))
    await end.ack()
    assert [one.seen, two.seen] == [[priority] * 4] * 2
    assert end.priority == priority


@pytest.mark.parametrize("priority", PRIORITIES)
@pytest.mark.parametrize("keeps", [True, False])
def test_a_dead_letter_and_its_replay(
    client: Client, guest: Guest, hops: list[str], priority: int | None, keeps: bool
) -> None:
    queue, dead = hops[0], hops[0] if keeps else hops[1]
    settings = {"delivery_limit": 2, "dead_letter": "keep" if keeps else {"queue": dead}}
    guest.ask("PATCH", f"/v1/queues/{queue}", settings)
    seen: list[int | None] = []
    died, replayed = threading.Event(), threading.Event()

    def handler(delivery: Delivery) -> None:
        seen.extend([delivery.priority, resolved(None)])
        if replayed.is_set():
            died.set()
            return
        if delivery.count == 2:
            died.set()
        raise RuntimeError("it fails each time")

    with client.handle(queue, handler):
        client.publish(queue, b"", priority=priority)
        died.wait()
    assert seen == [priority] * 4
    replayed.set()
    died.clear()
    if keeps:
        assert guest.ask("POST", f"/v1/queues/{queue}/replay", {"all": True}) == {"count": 1}
        with client.handle(queue, handler):
            died.wait()
    else:
        with client.handle(dead, handler):
            died.wait()
    assert seen == [priority] * 6


def test_what_is_reprioritised_is_handled_so(client: Client, guest: Guest, queue: str) -> None:
    client.publish(queue, b"", priority=Priority.HIGH, id="a")
    guest.ask("PUT", f"/v1/queues/{queue}/messages/a/priority", {"priority": -7})
    delivery = next(client.consume(queue))
    assert delivery.priority == -7
    delivery.ack()


def test_urgent_overtakes_bulk(client: Client, queue: str) -> None:
    bodies = [("bulk", Priority.BULK), ("low", -50), ("normal", None), ("zero", 0), ("300", 300), ("high", 50)]
    for body, priority in bodies:
        client.publish(queue, body, priority=priority)
    seen: list[tuple[str, int]] = []
    done = threading.Event()

    def handler(delivery: Delivery) -> None:
        seen.append((delivery.text, current_priority()))
        if delivery.text == "bulk":
            done.set()

    with client.handle(queue, handler):
        done.wait()
    assert seen == [("300", 300), ("high", 50), ("normal", 0), ("zero", 0), ("low", -50), ("bulk", -100)]
