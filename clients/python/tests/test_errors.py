"""Errors by type, each with a message that says what to do."""

from __future__ import annotations

import pickle
import socket
from typing import Any

import pytest

from overtake import (
    AsyncClient,
    Client,
    Closed,
    ConnectionLost,
    LeaseOver,
    LoginRefused,
    NotConfirmed,
    OvertakeError,
    Refused,
    TimedOut,
    Unroutable,
)

from .rows import row

# It is bound and does not listen: connections are refused, and nobody else is given its port.
NOBODY = socket.socket()
NOBODY.bind(("127.0.0.1", 0))


def free_port() -> int:
    """A port on which nobody listens."""
    port: int = NOBODY.getsockname()[1]
    return port


def test_all_are_overtake_errors_and_survive_a_pickle() -> None:
    kinds = [Closed, ConnectionLost, LeaseOver, LoginRefused, NotConfirmed, Refused, TimedOut, Unroutable]
    assert all(issubclass(kind, OvertakeError) for kind in kinds)
    assert issubclass(TimedOut, TimeoutError)
    again = pickle.loads(pickle.dumps(LeaseOver("stale-receipt", "the lease is over", "lease the next")))
    assert (type(again), again.code, again.hint) == (LeaseOver, "stale-receipt", "lease the next")


@row("errors by type")
def test_nobody_there_is_connection_lost_plain() -> None:
    with pytest.raises(ConnectionLost, match="check the address"):
        Client(f"amqp://127.0.0.1:{free_port()}")


@row("errors by type")
async def test_nobody_there_is_connection_lost_asyncio(amqp: str) -> None:
    with pytest.raises(ConnectionLost, match="check the address"):
        await AsyncClient(f"amqp://127.0.0.1:{free_port()}").connect()
    async with AsyncClient(amqp, http=f"http://127.0.0.1:{free_port()}") as client:
        with pytest.raises(ConnectionLost, match="check the address"):
            await client.declare_queue("any")


@row("errors by type")
def test_a_wrong_password_is_login_refused_plain(amqp: str, http: str) -> None:
    with pytest.raises(LoginRefused, match="check user, password"):
        Client(amqp.replace("://", "://guest:wrong@"), http=http)


@row("errors by type")
async def test_a_wrong_password_is_login_refused_asyncio(amqp: str, http: str) -> None:
    with pytest.raises(LoginRefused, match="check user, password"):
        await AsyncClient(amqp.replace("://", "://guest:wrong@"), http=http).connect()


@row("errors by type")
def test_the_broker_says_no_plain(client: Client, name: str) -> None:
    with pytest.raises(Refused, match=r"no exchange .* declare it first") as amqp:
        client.publish("", b"", exchange=name)
    assert amqp.value.code == 404
    with pytest.raises(Refused, match="there is no field `colour`") as http:
        client.declare_queue(name, colour="blue")
    assert http.value.hint
    with pytest.raises(Refused, match="declare"):
        next(client.consume(name))
    with pytest.raises(Refused) as lease:
        client.lease(name)
    assert (lease.value.code, type(lease.value)) == ("no-such-queue", Refused)


@row("errors by type")
async def test_the_broker_says_no_asyncio(aclient: AsyncClient, name: str) -> None:
    with pytest.raises(Refused, match=r"no exchange .* declare it first") as amqp:
        await aclient.publish("", b"", exchange=name)
    assert amqp.value.code == 404
    with pytest.raises(Refused, match="there is no field `colour`") as http:
        await aclient.declare_queue(name, colour="blue")
    assert http.value.hint
    with pytest.raises(Refused, match="declare"):
        await anext(aclient.consume(name))
    with pytest.raises(Refused) as lease:
        await aclient.lease(name)
    assert (lease.value.code, type(lease.value)) == ("no-such-queue", Refused)


@row("errors by type")
def test_the_end_of_a_queue_ends_its_consumers_plain(client: Client, name: str) -> None:
    client.declare_queue(name)
    consumer = client.consume(name)
    assert consumer.wait_until_consuming()
    client.delete_queue(name)
    with pytest.raises(Refused, match="consume again"):
        next(consumer)
    client.declare_queue(name)
    handling = client.handle(name, print)
    client.delete_queue(name)
    with pytest.raises(Refused):
        handling.wait()


@row("errors by type")
async def test_the_end_of_a_queue_ends_its_consumers_asyncio(aclient: AsyncClient, name: str) -> None:
    async def handler(_: Any) -> None:
        """Is never called."""

    await aclient.declare_queue(name)
    consumer = aclient.consume(name)
    await consumer.wait_until_consuming()
    await aclient.delete_queue(name)
    with pytest.raises(Refused, match="consume again"):
        await anext(consumer)
    await aclient.declare_queue(name)
    handling = aclient.handle(name, handler)
    await aclient.delete_queue(name)
    with pytest.raises(Refused):
        await handling.wait()


@row("errors by type")
def test_a_full_queue_does_not_confirm_plain(client: Client, name: str) -> None:
    client.declare_queue(name, max_length=1, overflow="reject")
    client.publish(name, b"")
    with pytest.raises(NotConfirmed, match="publish again later"):
        client.publish(name, b"")
    client.delete_queue(name)


@row("errors by type")
async def test_a_full_queue_does_not_confirm_asyncio(aclient: AsyncClient, name: str) -> None:
    await aclient.declare_queue(name, max_length=1, overflow="reject")
    await aclient.publish(name, b"")
    with pytest.raises(NotConfirmed, match="publish again later"):
        await aclient.publish(name, b"")
    await aclient.delete_queue(name)


@row("errors by type")
def test_no_queue_is_unroutable_plain(client: Client, name: str) -> None:
    with pytest.raises(Unroutable, match="declare the queue"):
        client.publish(name, b"")
    with pytest.raises(Unroutable):
        client.request(name, b"")


@row("errors by type")
async def test_no_queue_is_unroutable_asyncio(aclient: AsyncClient, name: str) -> None:
    with pytest.raises(Unroutable, match="declare the queue"):
        await aclient.publish(name, b"")
    with pytest.raises(Unroutable):
        await aclient.request(name, b"")


@row("errors by type")
def test_no_answer_is_timed_out_plain(client: Client, queue: str) -> None:
    with pytest.raises(TimedOut, match="wait longer"):
        client.request(queue, b"", timeout=0.05)


@row("errors by type")
def test_no_message_is_timed_out_plain(client: Client, queue: str) -> None:
    with pytest.raises(TimedOut):
        client.consume(queue).next(timeout=0.05)


@row("errors by type")
async def test_no_answer_is_timed_out_asyncio(aclient: AsyncClient, queue: str) -> None:
    with pytest.raises(TimedOut, match="wait longer"):
        await aclient.request(queue, b"", timeout=0.05)


@row("errors by type")
def test_what_is_closed_says_so_plain(amqp: str, http: str, queue: str) -> None:
    client = Client(amqp, http=http)
    consumer = client.consume(queue)
    client.close()
    client.close()
    with pytest.raises(Closed, match="open another"):
        client.publish(queue, b"")
    with pytest.raises(Closed):
        next(consumer)
    with pytest.raises(Closed):
        next(client.consume(queue))


@row("errors by type")
async def test_what_is_closed_says_so_asyncio(amqp: str, http: str, queue: str) -> None:
    client = AsyncClient(amqp, http=http)
    with pytest.raises(Closed):
        await client.publish(queue, b"")
    await client.connect()
    consumer = client.consume(queue)
    await client.close()
    await client.close()
    with pytest.raises(Closed, match="open another"):
        await client.publish(queue, b"")
    with pytest.raises(Closed):
        await anext(consumer)


@row("errors by type")
def test_what_cannot_be_written_is_the_callers_fault_plain(client: Client, queue: str) -> None:
    with pytest.raises(TypeError, match="correct its headers"):
        client.publish(queue, b"", headers={"a": object()})
    client.publish(queue, b"")


@row("errors by type")
async def test_what_cannot_be_written_is_the_callers_fault_asyncio(aclient: AsyncClient, queue: str) -> None:
    with pytest.raises(TypeError, match="correct its headers"):
        await aclient.publish(queue, b"", headers={"a": object()})
    await aclient.publish(queue, b"")


@row("errors by type")
def test_one_that_closes_the_channel_leaves_the_others_plain(client: Client, queue: str, name: str) -> None:
    import threading

    errors: list[Exception] = []

    def publish(exchange: str) -> None:
        for _ in range(50):
            try:
                client.publish(queue, b"", exchange=exchange)
            except Refused as error:
                errors.append(error)

    threads = [threading.Thread(target=publish, args=(exchange,)) for exchange in ("", "", f"{name}-nowhere")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 50


@row("errors by type")
async def test_one_that_closes_the_channel_leaves_the_others_asyncio(
    aclient: AsyncClient, queue: str, name: str
) -> None:
    import asyncio

    exchanges = ["" if number % 3 else f"{name}-nowhere" for number in range(60)]
    results = await asyncio.gather(
        *(aclient.publish(queue, b"", exchange=exchange) for exchange in exchanges), return_exceptions=True
    )
    assert [type(result) for result in results] == [Refused if exchange else type(None) for exchange in exchanges]
