"""The table of features in docs/clients.md, a test for each cell; what needs more than one has a module of its own."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from overtake import (
    AsyncClient,
    AsyncDelivery,
    Client,
    Delivery,
    Handling,
    Message,
    NotConfirmed,
    Priority,
    Refused,
    Reject,
    Unroutable,
    current_priority,
    processing_priority,
)
from overtake.priority import resolved

from .broker import Guest
from .rows import row


def totals(guest: Guest, queue: str) -> dict[str, int]:
    """How many messages are ready, leased, dead."""
    counted: dict[str, int] = guest.ask("GET", f"/v1/queues/{queue}")["totals"]
    return counted


def come_to(guest: Guest, queue: str, **wanted: int) -> None:
    """Waits until so many are ready, leased, dead: who ends a consumer does not wait for what becomes of its messages."""
    while {status: totals(guest, queue)[status] for status in wanted} != wanted:
        pass  # Each look is a round trip.


def priorities(guest: Guest, queue: str) -> list[Any]:
    """What the broker says each message was published with, in the order of publishing."""
    page = guest.ask("GET", f"/v1/queues/{queue}/messages?order=published")
    return [message["priority"] for message in page["messages"]]


# ---- connect


@row("connect")
def test_a_client_connects_and_is_seen_by_its_name_plain(amqp: str, http: str, guest: Guest, name: str) -> None:
    with Client(amqp, http=http, name=name) as client:
        client.declare_queue(name)
        client.publish(name, b"")
        client.delete_queue(name)
        seen = [each["client_properties"].get("connection_name") for each in guest.ask("GET", "/api/connections")]
        assert name in seen


@row("connect")
async def test_a_client_connects_and_is_seen_by_its_name_asyncio(amqp: str, http: str, guest: Guest, name: str) -> None:
    async with AsyncClient(amqp, http=http, name=name) as client:
        await client.declare_queue(name)
        await client.publish(name, b"")
        await client.delete_queue(name)
        seen = [each["client_properties"].get("connection_name") for each in guest.ask("GET", "/api/connections")]
        assert name in seen


# ---- declare

SETTINGS: dict[str, Any] = {
    "scheme": "signed",
    "order": {"lanes": [{"name": "primary", "from": 0}, {"name": "backfill"}]},
    "lanes": {"backfill": {"max_active": 2}},
    "max_active": 5,
    "delivery_limit": 3,
    "backoff": {"initial_ms": 10, "multiplier": 2, "max_ms": 100},
}


def check_settings(guest: Guest, queue: str) -> None:
    settings = guest.ask("GET", f"/v1/queues/{queue}")["settings"]
    assert {key: settings[key] for key in ("scheme", "max_active", "delivery_limit")} == {
        "scheme": "signed",
        "max_active": 5,
        "delivery_limit": 3,
    }
    assert settings["order"] == SETTINGS["order"]
    assert settings["backoff"]["initial_ms"] == 10


@row("declare a queue, by the settings of HTTP")
def test_a_queue_is_declared_with_settings_plain(client: Client, guest: Guest, name: str) -> None:
    client.declare_queue(name, **SETTINGS)
    client.declare_queue(name, **SETTINGS)
    check_settings(guest, name)
    client.delete_queue(name)
    assert guest.get(f"/v1/queues/{name}").status_code == 404


@row("declare a queue, by the settings of HTTP")
async def test_a_queue_is_declared_with_settings_asyncio(aclient: AsyncClient, guest: Guest, name: str) -> None:
    await aclient.declare_queue(name, **SETTINGS)
    await aclient.declare_queue(name, **SETTINGS)
    check_settings(guest, name)
    await aclient.delete_queue(name)
    assert guest.get(f"/v1/queues/{name}").status_code == 404


@row("declare an exchange, bind")
def test_an_exchange_gives_what_is_bound_plain(client: Client, guest: Guest, queue: str) -> None:
    client.declare_exchange(queue, "topic")
    client.bind_queue(queue, queue, "order.*")
    client.bind_queue(queue, queue, "order.*")
    client.publish("order.made", b"", exchange=queue, priority=9)
    with pytest.raises(Unroutable, match="bind one to the exchange"):
        client.publish("payment.made", b"", exchange=queue, mandatory=True)
    client.publish("payment.made", b"nobody wants it, which is no error", exchange=queue)
    delivery = next(client.consume(queue))
    assert (delivery.exchange, delivery.routing_key, delivery.priority) == (queue, "order.made", 9)
    delivery.ack()
    client.delete_exchange(queue)
    assert guest.get(f"/v1/exchanges/{queue}").status_code == 404


@row("declare an exchange, bind")
async def test_an_exchange_gives_what_is_bound_asyncio(aclient: AsyncClient, guest: Guest, queue: str) -> None:
    await aclient.declare_exchange(queue, "headers")
    await aclient.bind_queue(queue, queue, headers={"kind": "order"}, match="any")
    await aclient.publish("", b"", exchange=queue, headers={"kind": "order"}, priority=9)
    with pytest.raises(Unroutable, match="bind one to the exchange"):
        await aclient.publish("", b"", exchange=queue, headers={"kind": "payment"}, mandatory=True)
    await aclient.publish("", b"nobody wants it, which is no error", exchange=queue, headers={"kind": "payment"})
    delivery = await anext(aclient.consume(queue))
    assert (delivery.exchange, delivery.headers, delivery.priority) == (queue, {"kind": "order"}, 9)
    await delivery.ack()
    await aclient.delete_exchange(queue)
    assert guest.get(f"/v1/exchanges/{queue}").status_code == 404


# ---- scope


@row("scope")
def test_what_is_published_in_a_scope_has_its_priority_plain(client: Client, guest: Guest, queue: str) -> None:
    with processing_priority(Priority.LOW):
        client.publish(queue, b"")
        with processing_priority(Priority.CRITICAL):
            client.publish(queue, b"")
        client.publish(queue, b"", priority=0)
        client.publish_all(queue, [b"", Message(b"", priority=7)])
        client.publish(queue, b"")
    client.publish(queue, b"", priority=Priority.BULK)
    assert priorities(guest, queue) == [-50, 100, 0, -50, 7, -50, -100]


@row("scope")
async def test_what_is_published_in_a_scope_has_its_priority_asyncio(
    aclient: AsyncClient, guest: Guest, queue: str
) -> None:
    async with processing_priority(Priority.LOW):
        await aclient.publish(queue, b"")
        with processing_priority(Priority.CRITICAL):
            await aclient.publish(queue, b"")
        await aclient.publish(queue, b"", priority=0)
        await aclient.publish_all(queue, [b"", Message(b"", priority=7)])
        await aclient.send(queue, b"")
        sent = await aclient.send(queue, b"", priority=3)
    await sent
    await aclient.publish(queue, b"", priority=Priority.BULK)
    assert priorities(guest, queue) == [-50, 100, 0, -50, 7, -50, 3, -100]


@row("a task that is spawned keeps the scope")
def test_a_copied_context_keeps_the_scope_plain(client: Client, guest: Guest, queue: str) -> None:
    import contextvars
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool, processing_priority(Priority.LOW):
        pool.submit(contextvars.copy_context().run, client.publish, queue, b"").result()
        pool.submit(client.publish, queue, b"", priority=1).result()
    assert priorities(guest, queue) == [-50, 1]


@row("a task that is spawned keeps the scope")
async def test_a_task_keeps_the_scope_asyncio(aclient: AsyncClient, client: Client, guest: Guest, queue: str) -> None:
    with processing_priority(Priority.LOW):
        task = asyncio.create_task(aclient.publish(queue, b""))
        thread = asyncio.create_task(asyncio.to_thread(client.publish, queue, b""))
    await asyncio.gather(task, thread)
    assert priorities(guest, queue) == [-50, -50]


@row("which priority holds here")
def test_the_current_priority_is_the_scopes_plain() -> None:
    assert current_priority() is Priority.NORMAL
    with processing_priority(-7):
        assert current_priority() == -7


@row("which priority holds here")
async def test_the_current_priority_is_the_scopes_asyncio() -> None:
    assert current_priority() is Priority.NORMAL
    async with processing_priority(Priority.HIGH):
        assert current_priority() is Priority.HIGH


# ---- publish

EVERYTHING: dict[str, Any] = {
    "headers": {"customer": "7", "tries": 3, "eager": True},
    "id": "a1",
    "key": "customer-7",
    "key_weight": 3,
    "correlation_id": "c",
    "reply_to": "r",
    "content_type": "application/json",
    "kind": "order",
    "user_id": "guest",
    "ttl_ms": 60_000,
}


def check_everything(delivery: Delivery | AsyncDelivery) -> None:
    assert delivery.headers.items() >= EVERYTHING["headers"].items()
    said = {field: getattr(delivery, field) for field in EVERYTHING if field not in ("headers", "ttl_ms")}
    assert said == {field: EVERYTHING[field] for field in said}
    assert (delivery.json(), delivery.text, delivery.redelivered, delivery.count) == ({}, "{}", False, 1)


@row("publish, and know that it is durable")
def test_what_a_message_says_arrives_plain(client: Client, guest: Guest, queue: str) -> None:
    client.publish(queue, b"{}", **EVERYTHING)
    client.publish(queue, b"{}", id="a1")  # It waits already.
    assert guest.ask("GET", f"/v1/queues/{queue}/messages/a1")["expires_at"] is not None
    assert totals(guest, queue)["ready"] == 1
    delivery = next(client.consume(queue))
    check_everything(delivery)
    delivery.ack()


@row("publish, and know that it is durable")
async def test_what_a_message_says_arrives_asyncio(aclient: AsyncClient, guest: Guest, queue: str) -> None:
    await aclient.publish(queue, b"{}", **EVERYTHING)
    await aclient.publish(queue, b"{}", id="a1")  # It waits already.
    assert guest.ask("GET", f"/v1/queues/{queue}/messages/a1")["expires_at"] is not None
    assert totals(guest, queue)["ready"] == 1
    delivery = await anext(aclient.consume(queue))
    check_everything(delivery)
    await delivery.ack()


@row("publish, and know that it is durable")
def test_several_threads_publish_over_one_client_plain(client: Client, guest: Guest, queue: str) -> None:
    def publish() -> None:
        for _ in range(50):
            client.publish(queue, b"")

    threads = [threading.Thread(target=publish) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert totals(guest, queue)["ready"] == 200


@row("publish many, confirmed together")
def test_many_are_published_in_their_order_plain(client: Client, queue: str) -> None:
    assert client.publish_all(queue, (str(number) for number in range(3000))) == 3000
    consumer = client.consume(queue)
    for number in range(3000):
        delivery = next(consumer)
        assert delivery.text == str(number)
        delivery.ack()


@row("publish many, confirmed together")
async def test_many_are_published_in_their_order_asyncio(aclient: AsyncClient, queue: str) -> None:
    assert await aclient.publish_all(queue, (str(number) for number in range(3000))) == 3000
    consumer = aclient.consume(queue)
    for number in range(3000):
        delivery = await anext(consumer)
        assert delivery.text == str(number)
        await delivery.ack()


@row("publish many, confirmed together")
def test_one_that_fails_fails_alone_plain(client: Client, guest: Guest, name: str) -> None:
    client.declare_queue(name, max_length=2, overflow="reject")
    with pytest.raises(NotConfirmed) as refused:
        client.publish_all(name, [b"1", b"2", b"3", b"4"])
    assert refused.value.__notes__ == ["message 2 of these 4, and 1 more"]
    assert totals(guest, name)["ready"] == 2
    client.delete_queue(name)


@row("publish many, confirmed together")
async def test_one_that_fails_fails_alone_asyncio(aclient: AsyncClient, guest: Guest, name: str) -> None:
    await aclient.declare_queue(name, max_length=2, overflow="reject")
    with pytest.raises(NotConfirmed) as refused:
        await aclient.publish_all(name, [b"1", b"2", b"3", b"4"])
    assert refused.value.__notes__ == ["message 2 of these 4, and 1 more"]
    assert totals(guest, name)["ready"] == 2
    await aclient.delete_queue(name)


@row("publish without waiting for each")
async def test_send_waits_for_room_only_asyncio(amqp: str, http: str, guest: Guest, queue: str) -> None:
    async with AsyncClient(amqp, http=http, unconfirmed_max=2) as client:
        first, second = await client.send(queue, b"1"), await client.send(queue, Message(b"2", priority=1))
        assert not first.done(), "it does not wait for the confirm"
        third = await client.send(queue, b"3")
        assert first.done() or second.done(), "there was room only when one was confirmed"
        await asyncio.gather(first, second, third)
        with pytest.raises(Unroutable):
            await (await client.send("nowhere", b""))
    assert totals(guest, queue)["ready"] == 3


# ---- consume


@row("consume with a window")
def test_a_window_bounds_what_is_out_plain(client: Client, guest: Guest, queue: str) -> None:
    client.publish_all(queue, [b"1", b"2", b"3"])
    with client.consume(queue, window=2) as consumer:
        first, second = next(consumer), next(consumer)
        assert totals(guest, queue)["leased"] == 2
        first.ack()
        third = next(consumer)
        assert (first.text, second.text, third.text) == ("1", "2", "3")
        second.ack()
        third.ack()


@row("consume with a window")
async def test_a_window_bounds_what_is_out_asyncio(aclient: AsyncClient, guest: Guest, queue: str) -> None:
    await aclient.publish_all(queue, [b"1", b"2", b"3"])
    async with aclient.consume(queue, window=2) as consumer:
        first, second = await anext(consumer), await anext(consumer)
        assert totals(guest, queue)["leased"] == 2
        await first.ack()
        third = await anext(consumer)
        assert (first.text, second.text, third.text) == ("1", "2", "3")
        await second.ack()
        await third.ack()


@row("consume with a window")
def test_urgent_credit_reaches_whose_window_is_full_plain(client: Client, queue: str) -> None:
    client.publish(queue, b"bulk", priority=Priority.BULK)
    with client.consume(queue, window=1, urgent_credit={"from": 50, "messages": 1}) as consumer:
        bulk = next(consumer)
        client.publish(queue, b"urgent", priority=Priority.HIGH)
        assert next(consumer).text == "urgent"
        assert bulk.text == "bulk"


@row("consume with a window")
async def test_urgent_credit_reaches_whose_window_is_full_asyncio(aclient: AsyncClient, queue: str) -> None:
    await aclient.publish(queue, b"bulk", priority=Priority.BULK)
    async with aclient.consume(queue, window=1, urgent_credit={"from": 50, "messages": 1}) as consumer:
        bulk = await anext(consumer)
        await aclient.publish(queue, b"urgent", priority=Priority.HIGH)
        assert (await anext(consumer)).text == "urgent"
        assert bulk.text == "bulk"


@row("consume with a window")
def test_a_consumer_may_go_before_others_or_be_the_only_one_plain(client: Client, queue: str) -> None:
    with client.consume(queue) as after, client.consume(queue, consumer_priority=1) as before:
        assert after.wait_until_consuming()
        assert before.wait_until_consuming()
        client.publish(queue, b"")
        next(before).ack()
    with client.consume(queue, exclusive=True) as only:
        assert only.wait_until_consuming()
        with pytest.raises(Refused, match="exclusive"):
            next(client.consume(queue))


@row("consume with a window")
async def test_a_consumer_may_go_before_others_or_be_the_only_one_asyncio(aclient: AsyncClient, queue: str) -> None:
    async with aclient.consume(queue) as after, aclient.consume(queue, consumer_priority=1) as before:
        await after.wait_until_consuming()
        await before.wait_until_consuming()
        await aclient.publish(queue, b"")
        await (await anext(before)).ack()
    async with aclient.consume(queue, exclusive=True) as only:
        await only.wait_until_consuming()
        with pytest.raises(Refused, match="exclusive"):
            await anext(aclient.consume(queue))


@row("consume with a window")
def test_what_nobody_settled_is_put_back_plain(client: Client, queue: str) -> None:
    client.publish(queue, b"")
    with client.consume(queue) as consumer:
        held = next(consumer)
    held.ack()  # Too late: nothing happens.
    again = next(client.consume(queue))
    assert again.redelivered
    again.ack()
    again.ack()  # Once is enough.


@row("consume with a window")
async def test_what_nobody_settled_is_put_back_asyncio(aclient: AsyncClient, queue: str) -> None:
    await aclient.publish(queue, b"")
    async with aclient.consume(queue) as consumer:
        held = await anext(consumer)
    await held.ack()  # Too late: nothing happens.
    again = await anext(aclient.consume(queue))
    assert again.redelivered
    await again.ack()
    await again.ack()  # Once is enough.


@row("ack, nack (put back), reject (dead-letter)")
def test_a_delivery_is_settled_in_three_ways_plain(client: Client, guest: Guest, queue: str) -> None:
    client.publish(queue, b"")
    consumer = client.consume(queue)
    first = next(consumer)
    first.nack()
    second = next(consumer)
    assert (first.count, second.count, second.redelivered) == (1, 2, True)
    second.reject()
    client.publish(queue, b"other")
    third = next(consumer)
    third.ack()
    consumer.close()
    come_to(guest, queue, ready=0, leased=0, dead=1)
    assert (third.text, guest.ask("GET", f"/v1/queues/{queue}/messages?status=dead")["messages"][0]["id"]) == (
        "other",
        "seq-1",
    )


@row("ack, nack (put back), reject (dead-letter)")
async def test_a_delivery_is_settled_in_three_ways_asyncio(aclient: AsyncClient, guest: Guest, queue: str) -> None:
    await aclient.publish(queue, b"")
    consumer = aclient.consume(queue)
    first = await anext(consumer)
    await first.nack()
    second = await anext(consumer)
    assert (first.count, second.count, second.redelivered) == (1, 2, True)
    await second.reject()
    await aclient.publish(queue, b"other")
    third = await anext(consumer)
    await third.ack()
    await consumer.close()
    come_to(guest, queue, ready=0, leased=0, dead=1)
    assert (third.text, guest.ask("GET", f"/v1/queues/{queue}/messages?status=dead")["messages"][0]["id"]) == (
        "other",
        "seq-1",
    )


# ---- handle


@row("handle: run in the message's scope, ack what succeeds, nack what fails")
def test_a_handler_acks_nacks_and_rejects_in_scope_plain(client: Client, guest: Guest, queue: str) -> None:
    seen: list[tuple[str, int | None]] = []
    done = threading.Event()

    def handler(delivery: Delivery) -> None:
        seen.append((delivery.text, resolved(None)))
        if delivery.text == "fails once" and delivery.count == 1:
            raise RuntimeError
        if delivery.text == "never":
            raise Reject("it will never do")
        if delivery.text == "last":
            done.set()

    for body, priority in [("fails once", 100), ("never", 0), ("fine", Priority.LOW), ("last", Priority.BULK)]:
        client.publish(queue, body, priority=priority)
    with client.handle(queue, handler):
        done.wait()
    assert seen == [("fails once", 100), ("fails once", 100), ("never", 0), ("fine", -50), ("last", -100)]
    come_to(guest, queue, ready=0, leased=0, dead=1)


@row("handle: run in the message's scope, ack what succeeds, nack what fails")
async def test_a_handler_acks_nacks_and_rejects_in_scope_asyncio(
    aclient: AsyncClient, guest: Guest, queue: str
) -> None:
    seen: list[tuple[str, int | None]] = []
    done = asyncio.Event()

    async def handler(delivery: AsyncDelivery) -> None:
        seen.append((delivery.text, resolved(None)))
        if delivery.text == "fails once" and delivery.count == 1:
            raise RuntimeError
        if delivery.text == "never":
            raise Reject("it will never do")
        if delivery.text == "last":
            done.set()

    for body, priority in [("fails once", 100), ("never", 0), ("fine", Priority.LOW), ("last", Priority.BULK)]:
        await aclient.publish(queue, body, priority=priority)
    async with aclient.handle(queue, handler):
        await done.wait()
    assert seen == [("fails once", 100), ("fails once", 100), ("never", 0), ("fine", -50), ("last", -100)]
    come_to(guest, queue, ready=0, leased=0, dead=1)


@row("handle: run in the message's scope, ack what succeeds, nack what fails")
def test_stopping_finishes_what_is_in_hand_and_no_more_plain(client: Client, guest: Guest, queue: str) -> None:
    begun, go_on = threading.Barrier(3), threading.Event()

    def handler(_: Delivery) -> None:
        begun.wait()
        go_on.wait()

    client.publish_all(queue, [b""] * 5)
    handling = client.handle(queue, handler, concurrency=2, window=4)
    begun.wait()
    stopping = threading.Thread(target=handling.stop)
    stopping.start()
    go_on.set()
    stopping.join()
    handling.wait()
    come_to(guest, queue, ready=3, leased=0)


@row("handle: run in the message's scope, ack what succeeds, nack what fails")
async def test_cancelling_finishes_what_is_in_hand_and_no_more_asyncio(
    aclient: AsyncClient, guest: Guest, queue: str
) -> None:
    begun, go_on = asyncio.Barrier(3), asyncio.Event()

    async def handler(_: AsyncDelivery) -> None:
        await begun.wait()
        await go_on.wait()

    await aclient.publish_all(queue, [b""] * 5)
    waiting = asyncio.create_task(aclient.handle(queue, handler, concurrency=2, window=4).wait())
    await begun.wait()
    waiting.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    come_to(guest, queue, ready=3, leased=0)


@row("handle: run in the message's scope, ack what succeeds, nack what fails")
def test_a_handler_may_stop_itself_plain(client: Client, guest: Guest, queue: str) -> None:
    handlings: list[Handling] = []
    is_there = threading.Event()

    def handler(_: Delivery) -> None:
        is_there.wait()
        handlings[0].stop()

    client.publish_all(queue, [b""] * 3)
    handlings.append(client.handle(queue, handler, window=2))
    is_there.set()
    handlings[0].wait()
    come_to(guest, queue, ready=2, leased=0)


@row("handle: run in the message's scope, ack what succeeds, nack what fails")
async def test_a_handler_may_stop_itself_asyncio(aclient: AsyncClient, guest: Guest, queue: str) -> None:
    async def handler(_: AsyncDelivery) -> None:
        await handling.stop()

    await aclient.publish_all(queue, [b""] * 3)
    handling = aclient.handle(queue, handler, window=2)
    await handling.wait()
    come_to(guest, queue, ready=2, leased=0)


@row("handle: run in the message's scope, ack what succeeds, nack what fails")
def test_a_message_that_says_nothing_is_handled_outside_of_any_scope_plain(client: Client, queue: str) -> None:
    seen: list[int | None] = []
    done = threading.Event()

    def handler(delivery: Delivery) -> None:
        seen.extend([delivery.priority, resolved(None)])
        done.set()

    client.publish(queue, b"")
    with processing_priority(Priority.LOW), client.handle(queue, handler):
        done.wait()
    assert seen == [None, None]


@row("handle: run in the message's scope, ack what succeeds, nack what fails")
async def test_a_message_that_says_nothing_is_handled_outside_of_any_scope_asyncio(
    aclient: AsyncClient, queue: str
) -> None:
    seen: list[int | None] = []
    done = asyncio.Event()

    async def handler(delivery: AsyncDelivery) -> None:
        seen.extend([delivery.priority, resolved(None)])
        done.set()

    await aclient.publish(queue, b"")
    with processing_priority(Priority.LOW):
        async with aclient.handle(queue, handler):
            await done.wait()
    assert seen == [None, None]


# ---- request and reply


@row("request and reply")
def test_a_question_is_answered_plain(client: Client, queue: str) -> None:
    def handler(delivery: Delivery) -> str:
        return f"{delivery.text} at {current_priority()}"

    with client.handle(queue, handler), processing_priority(Priority.HIGH):
        answer = client.request(queue, "ping")
    assert (answer.text, answer.priority) == ("ping at 50", 50)


@row("request and reply")
async def test_a_question_is_answered_asyncio(aclient: AsyncClient, queue: str) -> None:
    async def handler(delivery: AsyncDelivery) -> str:
        return f"{delivery.text} at {current_priority()}"

    async with aclient.handle(queue, handler):
        with processing_priority(Priority.HIGH):
            answers = await asyncio.gather(*(aclient.request(queue, f"ping {number}") for number in range(10)))
    assert [answer.text for answer in answers] == [f"ping {number} at 50" for number in range(10)]


@row("request and reply")
def test_a_delivery_is_replied_to_by_hand_plain(client: Client, queue: str) -> None:
    answers: list[Delivery] = []
    asking = threading.Thread(target=lambda: answers.append(client.request(queue, "ping")))
    asking.start()
    delivery = next(client.consume(queue))
    delivery.reply("pong", priority=3)
    delivery.ack()
    asking.join()
    assert (answers[0].text, answers[0].priority) == ("pong", 3)
    with pytest.raises(ValueError, match="no reply_to"):
        answers[0].reply("and you?")


@row("request and reply")
async def test_a_delivery_is_replied_to_by_hand_asyncio(aclient: AsyncClient, queue: str) -> None:
    asking = asyncio.create_task(aclient.request(queue, "ping"))
    delivery = await anext(aclient.consume(queue))
    await delivery.reply("pong", priority=3)
    await delivery.ack()
    answer = await asking
    assert (answer.text, answer.priority) == ("pong", 3)
    with pytest.raises(ValueError, match="no reply_to"):
        await answer.reply("and you?")
