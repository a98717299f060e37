"""Every way the work on a message can end: what becomes of the message, what is logged, and what is raised when the scope is left."""

from __future__ import annotations

import asyncio
import gc
import logging
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pika
import pika.data
import pytest

from overtake import AsyncClient, AsyncDelivery, Client, Delivery, LeaseOver, Refused

from .broker import Guest, Line
from .rows import row
from .test_leases import status
from .test_reconnect import close_by_management, wait_for

HANDLE = "handle: run in the message's scope, ack what succeeds, nack what fails"

#: Errors that end the handling.
FATAL = [SystemExit("3"), KeyboardInterrupt()]
#: Errors that end the work on one message.
FAILURES = [ValueError("no"), asyncio.CancelledError()]


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines that this library logged at ERROR."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "overtake" and record.levelno == logging.ERROR
    ]


def name_of(error: BaseException) -> str:
    return type(error).__name__


@row(HANDLE)
@pytest.mark.parametrize("error", FATAL, ids=name_of)
def test_who_ends_its_thread_puts_its_message_back_plain(
    client: Client, guest: Guest, queue: str, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def handler(_: Delivery) -> None:
        raise error

    with pytest.raises(type(error)), client.handle(queue, handler) as handling:
        client.publish(queue, b"1")
        for thread in handling._threads:
            thread.join()
        # The consumer has ended: the message is back before anybody leaves.
        assert status(guest, queue) == {"ready": 1}
        [line] = said(caplog)
        assert name_of(error) in line
    [delivery] = client.lease(queue)
    assert delivery.count == 2, "it counts as a failed attempt"
    delivery.release()


@row(HANDLE)
@pytest.mark.parametrize("error", FATAL, ids=name_of)
def test_leaving_the_scope_raises_why_the_handling_ended_plain(
    client: Client, queue: str, error: BaseException
) -> None:
    began = threading.Event()

    def handler(_: Delivery) -> None:
        began.set()
        raise error

    with pytest.raises(type(error)), client.handle(queue, handler):
        client.publish(queue, b"1")
        assert began.wait(60)


@row(HANDLE)
@pytest.mark.parametrize("error", FATAL, ids=name_of)
async def test_who_would_end_the_loop_puts_its_message_back_asyncio(
    aclient: AsyncClient, guest: Guest, queue: str, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(_: AsyncDelivery) -> None:
        raise error

    handling = aclient.handle(queue, handler)
    await aclient.publish(queue, b"1")
    with pytest.raises(type(error)):
        await handling.wait()
    assert await asyncio.to_thread(status, guest, queue) == {"ready": 1}
    assert len(said(caplog)) == 1
    [lease] = await aclient.lease(queue)
    assert lease.count == 2
    await lease.release()


@row(HANDLE)
@pytest.mark.parametrize("error", FATAL, ids=name_of)
async def test_leaving_the_scope_raises_why_the_handling_ended_asyncio(
    aclient: AsyncClient, queue: str, error: BaseException
) -> None:
    began = asyncio.Event()

    async def handler(_: AsyncDelivery) -> None:
        began.set()
        raise error

    with pytest.raises(type(error)):
        async with aclient.handle(queue, handler):
            await aclient.publish(queue, b"1")
            await began.wait()


@row(HANDLE)
def test_others_finish_what_they_have_in_hand_plain(client: Client, guest: Guest, queue: str) -> None:
    together = threading.Barrier(3, timeout=60)

    def handler(delivery: Delivery) -> None:
        together.wait()
        if delivery.text == "ends":
            raise SystemExit

    with pytest.raises(SystemExit), client.handle(queue, handler, concurrency=3):
        client.publish_all(queue, ["1", "ends", "2"])
        wait_for(guest, queue, "ready", 1)
    assert status(guest, queue) == {"ready": 1}


@row(HANDLE)
@pytest.mark.parametrize("error", FAILURES, ids=name_of)
def test_a_failure_ends_the_work_on_one_message_only_plain(
    client: Client, guest: Guest, queue: str, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[tuple[str, int]] = []
    done = threading.Event()

    def handler(delivery: Delivery) -> None:
        seen.append((delivery.text, delivery.count))
        if delivery.text == "fails" and delivery.count == 1:
            raise error
        if delivery.text == "last":
            done.set()

    with client.handle(queue, handler):
        client.publish_all(queue, ["fails", "last"])
        assert done.wait(60)
    assert seen == [("fails", 1), ("fails", 2), ("last", 1)]
    assert status(guest, queue) == {}
    [line] = said(caplog)
    assert name_of(error) in line


@row(HANDLE)
@pytest.mark.parametrize("error", FAILURES, ids=name_of)
async def test_a_failure_ends_the_work_on_one_message_only_asyncio(
    aclient: AsyncClient, guest: Guest, queue: str, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[tuple[str, int]] = []
    done = asyncio.Event()

    async def handler(delivery: AsyncDelivery) -> None:
        seen.append((delivery.text, delivery.count))
        if delivery.text == "fails" and delivery.count == 1:
            raise error
        if delivery.text == "last":
            done.set()

    async with aclient.handle(queue, handler):
        await aclient.publish_all(queue, ["fails", "last"])
        await done.wait()
    assert seen == [("fails", 1), ("fails", 2), ("last", 1)]
    assert await asyncio.to_thread(status, guest, queue) == {}
    [line] = said(caplog)
    assert name_of(error) in line


@row(HANDLE)
async def test_a_task_that_is_cancelled_from_outside_puts_its_message_back_asyncio(
    aclient: AsyncClient, guest: Guest, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    works: asyncio.Queue[asyncio.Task[None] | None] = asyncio.Queue()

    async def handler(delivery: AsyncDelivery) -> None:
        works.put_nowait(asyncio.current_task())
        if delivery.count == 1:
            await asyncio.Event().wait()

    async with aclient.handle(queue, handler):
        await aclient.publish(queue, b"1")
        work = await works.get()
        assert work is not None
        work.cancel()
        await works.get()
    assert await asyncio.to_thread(status, guest, queue) == {}
    assert len(said(caplog)) == 1


@row(HANDLE)
def test_a_loop_that_ends_with_a_handler_at_work_leaves_nothing_leased_asyncio(
    amqp: str, http: str, guest: Guest, queue: str, client: Client
) -> None:
    client.publish_all(queue, ["1", "2"])

    async def main() -> None:
        both = asyncio.Barrier(3)

        async def handler(_: AsyncDelivery) -> None:
            await both.wait()
            await asyncio.Event().wait()

        async with AsyncClient(amqp, http=http) as aclient:
            handling = aclient.handle(queue, handler, concurrency=2)
            await both.wait()
            assert handling is not None

    asyncio.run(main())  # It cancels whatever is left.
    wait_for(guest, queue, "ready", 2)


@row(HANDLE)
def test_a_handling_ends_with_its_queue_plain(client: Client, name: str, caplog: pytest.LogCaptureFixture) -> None:
    client.declare_queue(name)
    with pytest.raises(Refused, match=f"ended the consumer of {name}"):  # noqa: SIM117
        with client.handle(name, lambda _: None, concurrency=3) as handling:
            handling._consumer.wait_until_consuming()
            client.delete_queue(name)
            for thread in handling._threads:
                thread.join()
    [line] = said(caplog)
    assert name in line
    assert "right to read it was taken away" in line


@row(HANDLE)
async def test_a_handling_ends_with_its_queue_asyncio(
    aclient: AsyncClient, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(_: AsyncDelivery) -> None:
        return

    await aclient.declare_queue(name)
    with pytest.raises(Refused, match=f"ended the consumer of {name}"):
        async with aclient.handle(name, handler, concurrency=3) as handling:
            await handling._consumer.wait_until_consuming()
            await aclient.delete_queue(name)
            await asyncio.wait([handling._task])
    [line] = said(caplog)
    assert name in line


@pytest.fixture
def reader(guest: Guest, name: str) -> Iterator[str]:
    """A user who may read."""
    guest.ask("PUT", f"/v1/users/{name}", {"password": "p"})
    allow(guest, name, ".*")
    yield name
    guest.ask("DELETE", f"/v1/users/{name}")


def allow(guest: Guest, user: str, what: str) -> None:
    """Says what a user may read."""
    guest.ask("PUT", f"/v1/users/{user}/permissions/%2F", {"configure": "", "write": ".*", "read": what})


@row(HANDLE)
def test_a_right_that_is_taken_away_ends_the_handling_and_what_is_in_hand_is_settled_plain(
    amqp: str, http: str, guest: Guest, queue: str, reader: str, caplog: pytest.LogCaptureFixture
) -> None:
    began, goes_on = threading.Event(), threading.Event()

    def handler(_: Delivery) -> None:
        began.set()
        assert goes_on.wait(60)

    with Client(amqp.replace("://", f"://{reader}:p@"), http=http) as client:
        with pytest.raises(Refused), client.handle(queue, handler) as handling:
            client.publish(queue, b"1")
            assert began.wait(60)
            allow(guest, reader, "")
            while not handling._consumer._subscription._is_over:
                client.publish(queue, b"")  # A round trip, behind which the broker has said so.
            goes_on.set()
        assert len(said(caplog)) == 1
    assert guest.ask("GET", f"/v1/queues/{queue}")["totals"]["leased"] == 0
    bodies = [each["body"] for each in guest.ask("GET", f"/v1/queues/{queue}/messages?status=ready")["messages"]]
    assert "1" not in bodies, "it was acked"


@row(HANDLE)
def test_a_connection_that_an_operator_closes_ends_no_handling_plain(
    amqp: str, http: str, guest: Guest, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    began: list[int] = []
    first, goes_on, second = threading.Event(), threading.Event(), threading.Event()

    def handler(delivery: Delivery) -> None:
        began.append(delivery.count)
        if len(began) == 1:
            first.set()
            assert goes_on.wait(60)
        else:
            second.set()

    with Client(amqp, http=http, name=queue) as client, client.handle(queue, handler):
        client.publish(queue, b"1")
        assert first.wait(60)
        close_by_management(guest, queue)
        wait_for(guest, queue, "ready", 1)
        goes_on.set()
        assert second.wait(60)
    assert status(guest, queue) == {}
    assert said(caplog) == []


@row(HANDLE)
def test_what_is_no_exception_ends_the_handling_plain(
    client: Client, guest: Guest, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    def handler(_: Delivery) -> None:
        raise GeneratorExit

    with pytest.raises(GeneratorExit), client.handle(queue, handler, concurrency=2) as handling:
        client.publish(queue, b"1")
        for thread in handling._threads:
            thread.join()
        assert status(guest, queue) == {"ready": 1}
    assert len(said(caplog)) == 1


class Raw:
    """A header value as bytes of AMQP."""

    def __init__(self, encoded: bytes) -> None:
        self.encoded = encoded


@pytest.fixture
def raw_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plain client publishes header values as bytes."""
    encode = pika.data.encode_value

    def encode_value(pieces: list[bytes], value: Any) -> int:
        if isinstance(value, Raw):
            pieces.append(value.encoded)
            return len(value.encoded)
        return encode(pieces, value)

    monkeypatch.setattr(pika.data, "encode_value", encode_value)


#: A time in the year 55840, as whoever says microseconds sends it; and a number that is none.
FAR = 1_700_000_000_000_000
STRANGE = {"at": Raw(struct.pack(">cQ", b"T", FAR)), "number": Raw(struct.pack(">cd", b"d", float("inf")))}


@row(HANDLE)
@pytest.mark.usefixtures("raw_headers")
def test_a_header_that_the_library_below_cannot_hold_is_read_plain(client: Client, queue: str) -> None:
    client.publish(queue, b"1", headers={**STRANGE, "last": "x"})
    delivery = client.consume(queue).next(60)
    assert delivery.headers == {"at": FAR, "number": float("inf"), "last": "x"}
    delivery.ack()


@row(HANDLE)
@pytest.mark.usefixtures("raw_headers")
async def test_a_header_that_the_library_below_cannot_hold_is_read_asyncio(
    client: Client, aclient: AsyncClient, queue: str
) -> None:
    client.publish(queue, b"1", headers={"at": STRANGE["at"], "last": "x"})
    delivery = await anext(aclient.consume(queue))
    assert delivery.headers == {"at": FAR, "last": "x"}
    await delivery.ack()


LEASE = "lease, extend, settle over HTTP; leases are extended by themselves"


@row(LEASE)
@pytest.mark.parametrize("error", FATAL, ids=name_of)
def test_a_lease_is_put_back_whatever_ends_its_body_plain(
    client: Client, guest: Guest, queue: str, error: BaseException
) -> None:
    client.publish(queue, b"1")
    [lease] = client.lease(queue)
    with pytest.raises(type(error)), lease:
        raise error
    assert status(guest, queue) == {"ready": 1}


@row(LEASE)
async def test_a_lease_is_put_back_when_its_task_is_cancelled_asyncio(
    aclient: AsyncClient, guest: Guest, queue: str
) -> None:
    await aclient.publish(queue, b"1")
    began = asyncio.Event()

    async def work() -> None:
        [lease] = await aclient.lease(queue)
        async with lease:
            began.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await began.wait()
    task.cancel()
    await asyncio.wait([task])
    assert await asyncio.to_thread(status, guest, queue) == {"ready": 1}


@row(LEASE)
def test_a_lease_whose_thread_has_ended_ends_by_itself_plain(client: Client, guest: Guest, queue: str) -> None:
    def work() -> None:
        [lease] = client.lease(queue, lease_ms=500)
        assert not lease.is_settled

    client.publish(queue, b"1")
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    gc.collect()
    wait_for(guest, queue, "ready", 1)


@row(LEASE)
def test_a_lease_that_cannot_be_settled_is_not_extended_plain(amqp: str, http: str, guest: Guest, queue: str) -> None:
    with Line(http) as line, Client(amqp, http=line.url) as client:
        client.publish(queue, b"1")
        [lease] = client.lease(queue, lease_ms=500)
        with pytest.raises(LeaseOver), lease:
            guest.ask("POST", f"/v1/queues/{queue}/settle", {"receipts": [lease.receipt], "how": "release"})
        assert status(guest, queue) == {"ready": 1}
        assert client._keeper._keeping.next() is None
