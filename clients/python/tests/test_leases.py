"""Leases over HTTP: they are extended by themselves, and end by a settlement, an exception, or somebody else's deed."""

from __future__ import annotations

import asyncio

import pytest

from overtake import AsyncClient, AsyncLease, Client, Lease, LeaseOver, Priority, Reject
from overtake.priority import resolved

from .broker import Guest
from .rows import row

#: A lease that is extended every half second.
LEASE_MS = 1500


def deadline(guest: Guest, queue: str) -> str:
    """When the first leased message of a queue is to come back."""
    [message] = guest.ask("GET", f"/v1/queues/{queue}/messages?status=leased")["messages"]
    return str(message["deadline"])


def status(guest: Guest, queue: str) -> dict[str, int]:
    """How many messages are where."""
    counted = guest.ask("GET", f"/v1/queues/{queue}")["totals"]
    return {key: counted[key] for key in ("ready", "delayed", "leased", "dead") if counted[key]}


@row("lease, extend, settle over HTTP; leases are extended by themselves")
def test_a_lease_has_what_the_message_says_plain(client: Client, guest: Guest, queue: str) -> None:
    client.publish(
        queue, b"\xff", priority=Priority.LOW, id="a", key="k", key_weight=2, headers={"n": 1}, correlation_id="c"
    )
    [lease] = client.lease(queue, lease_ms=0)
    assert (lease.body, lease.priority, lease.id, lease.key, lease.key_weight) == (b"\xff", -50, "a", "k", 2)
    assert (lease.headers, lease.correlation_id, lease.count, lease.redelivered) == ({"n": 1}, "c", 1, False)
    lease.ack()
    assert client.lease(queue, 10) == []
    assert status(guest, queue) == {}


@row("lease, extend, settle over HTTP; leases are extended by themselves")
async def test_a_lease_has_what_the_message_says_asyncio(aclient: AsyncClient, guest: Guest, queue: str) -> None:
    await aclient.publish(
        queue, b"\xff", priority=300, id="a", key="k", key_weight=2, headers={"n": 1}, correlation_id="c"
    )
    [lease] = await aclient.lease(queue, lease_ms=0)
    assert (lease.body, lease.priority, lease.id, lease.key, lease.key_weight) == (b"\xff", 300, "a", "k", 2)
    assert (lease.headers, lease.correlation_id, lease.count, lease.redelivered) == ({"n": 1}, "c", 1, False)
    await lease.ack()
    assert await aclient.lease(queue, 10) == []
    assert status(guest, queue) == {}


@row("lease, extend, settle over HTTP; leases are extended by themselves")
def test_the_body_of_a_lease_is_a_scope_and_acks_plain(client: Client, guest: Guest, queue: str) -> None:
    client.publish_all(queue, ["1", "2", "3"])
    first, second, third = client.lease(queue, 3)
    with first:
        pass
    with pytest.raises(KeyError), second:
        raise KeyError
    with pytest.raises(Reject), third:
        raise Reject
    assert status(guest, queue) == {"ready": 1, "dead": 1}
    client.publish(queue, b"", priority=Priority.HIGH)
    [urgent] = client.lease(queue)
    with urgent:
        assert resolved(None) == 50
        urgent.release()
    assert resolved(None) is None
    assert status(guest, queue) == {"ready": 2, "dead": 1}


@row("lease, extend, settle over HTTP; leases are extended by themselves")
async def test_the_body_of_a_lease_is_a_scope_and_acks_asyncio(aclient: AsyncClient, guest: Guest, queue: str) -> None:
    await aclient.publish_all(queue, ["1", "2", "3"])
    first, second, third = await aclient.lease(queue, 3)

    async def ends_by(lease: AsyncLease, error: Exception) -> None:
        async with lease:
            raise error

    async with first:
        pass
    with pytest.raises(KeyError):
        await ends_by(second, KeyError())
    with pytest.raises(Reject):
        await ends_by(third, Reject())
    assert status(guest, queue) == {"ready": 1, "dead": 1}
    await aclient.publish(queue, b"", priority=Priority.HIGH)
    [urgent] = await aclient.lease(queue)
    async with urgent:
        assert resolved(None) == 50
        await urgent.release()
    assert resolved(None) is None
    assert status(guest, queue) == {"ready": 2, "dead": 1}


@row("lease, extend, settle over HTTP; leases are extended by themselves")
def test_a_nack_may_wait_plain(client: Client, guest: Guest, queue: str) -> None:
    client.publish(queue, b"")
    [lease] = client.lease(queue)
    lease.nack(delay_ms=3_600_000)
    assert status(guest, queue) == {"delayed": 1}


@row("lease, extend, settle over HTTP; leases are extended by themselves")
async def test_a_nack_may_wait_asyncio(aclient: AsyncClient, guest: Guest, queue: str) -> None:
    await aclient.publish(queue, b"")
    [lease] = await aclient.lease(queue)
    await lease.nack(delay_ms=3_600_000)
    assert status(guest, queue) == {"delayed": 1}


@row("lease, extend, settle over HTTP; leases are extended by themselves")
def test_a_lease_is_extended_while_it_is_held_plain(client: Client, guest: Guest, queue: str) -> None:
    client.publish_all(queue, [b"", b""])
    one, two = client.lease(queue, 2, lease_ms=LEASE_MS)
    two.release()
    before = deadline(guest, queue)
    while deadline(guest, queue) == before:
        pass  # Each look is a round trip; the extension comes by itself.
    one.extend(3_600_000)
    assert deadline(guest, queue) > before
    one.ack()
    assert status(guest, queue) == {"ready": 1}


@row("lease, extend, settle over HTTP; leases are extended by themselves")
async def test_a_lease_is_extended_while_it_is_held_asyncio(aclient: AsyncClient, guest: Guest, queue: str) -> None:
    await aclient.publish_all(queue, [b"", b""])
    one, two = await aclient.lease(queue, 2, lease_ms=LEASE_MS)
    await two.release()
    before = await asyncio.to_thread(deadline, guest, queue)
    while await asyncio.to_thread(deadline, guest, queue) == before:
        pass  # Each look is a round trip; the extension comes by itself.
    await one.extend(3_600_000)
    assert deadline(guest, queue) > before
    await one.ack()
    assert status(guest, queue) == {"ready": 1}


@row("lease, extend, settle over HTTP; leases are extended by themselves")
def test_a_lease_waits_for_what_comes_plain(client: Client, queue: str) -> None:
    import threading

    leased: list[Lease] = []
    waiting = threading.Thread(target=lambda: leased.extend(client.lease(queue, wait_ms=100_000)))
    waiting.start()
    client.publish(queue, b"")
    waiting.join()
    leased[0].ack()


@row("lease, extend, settle over HTTP; leases are extended by themselves")
async def test_a_lease_waits_for_what_comes_asyncio(aclient: AsyncClient, queue: str) -> None:
    waiting = asyncio.create_task(aclient.lease(queue, wait_ms=100_000))
    await aclient.publish(queue, b"")
    [lease] = await waiting
    await lease.ack()


@row("lease, extend, settle over HTTP; leases are extended by themselves")
def test_a_lease_that_is_over_says_so_plain(client: Client, guest: Guest, queue: str) -> None:
    client.publish_all(queue, [b"1", b"2", b"3"])
    one, two, three = client.lease(queue, 3, lease_ms=LEASE_MS)
    guest.ask("POST", f"/v1/queues/{queue}/settle", {"receipts": [one.receipt, two.receipt], "how": "ack"})
    with pytest.raises(LeaseOver, match="the lease is over"):
        one.ack()
    while not two.is_over:
        deadline(guest, queue)  # The extension of both others is refused for one.
    with pytest.raises(LeaseOver, match="settle in time"):
        two.nack()
    assert not three.is_over
    three.ack()
    with pytest.raises(LeaseOver):
        three.ack()


@row("lease, extend, settle over HTTP; leases are extended by themselves")
async def test_a_lease_that_is_over_says_so_asyncio(aclient: AsyncClient, guest: Guest, queue: str) -> None:
    await aclient.publish_all(queue, [b"1", b"2", b"3"])
    one, two, three = await aclient.lease(queue, 3, lease_ms=LEASE_MS)
    guest.ask("POST", f"/v1/queues/{queue}/settle", {"receipts": [one.receipt, two.receipt], "how": "ack"})
    with pytest.raises(LeaseOver, match="the lease is over"):
        await one.ack()
    while not two.is_over:
        await asyncio.to_thread(deadline, guest, queue)
    with pytest.raises(LeaseOver, match="settle in time"):
        await two.nack()
    assert not three.is_over
    await three.ack()
    with pytest.raises(LeaseOver):
        await three.ack()


@row("lease, extend, settle over HTTP; leases are extended by themselves")
def test_who_is_asked_to_give_a_message_back_hears_it_plain(client: Client, guest: Guest, queue: str) -> None:
    client.publish(queue, b"", id="a")
    [lease] = client.lease(queue, lease_ms=LEASE_MS)
    guest.ask("POST", f"/v1/queues/{queue}/messages/a/cancel", {})
    while not lease.cancel_asked:
        deadline(guest, queue)
    lease.reject()
