"""What is ours, of docs/amqp.md: arguments and headers, from a client that never heard of Overtake."""

import json

import pika
import pytest
from words import Inbox, bodies, declare, depth_becomes, get, get_all, publish, round_trip, take, wait_until

pytestmark = pytest.mark.ours


@pytest.fixture
def queue(channel):
    return declare(channel, x_max_priority=9)


def order(channel, what, **body):
    """Says it to `overtake.control`, and gives the answer."""
    answers = declare(channel)
    properties = pika.BasicProperties(reply_to=answers)
    channel.basic_publish("overtake.control", what, json.dumps(body), properties)
    return json.loads(take(channel, answers, 1)[0].body)


def test_what_waits_can_become_urgent(channel, queue):
    publish(channel, queue, b"a", b"b", priority=1)
    publish(channel, queue, b"now urgent", priority=1, headers={"x-overtake-id": "a1"})
    assert order(channel, "reprioritise", queue=queue, id="a1", priority=9) == {"count": 1}
    assert get_all(channel, queue) == [b"now urgent", b"a", b"b"]


def test_what_waits_can_be_removed(channel, queue):
    for customer in ("7", "8", "7"):
        publish(channel, queue, customer.encode(), headers={"customer": customer})
    assert order(channel, "remove", queue=queue, filter={"headers": {"customer": "7"}}) == {"count": 2}
    assert get_all(channel, queue) == [b"8"]


def test_an_order_that_cannot_be_done_says_why(channel, queue):
    publish(channel, queue, b"lent", headers={"x-overtake-id": "a1"})
    get(channel, queue)
    assert order(channel, "reprioritise", queue=queue, id="a1", priority=9)["error"] == "leased"


def test_of_two_of_one_name_the_first_waits(channel, queue):
    channel.confirm_delivery()
    for body in (b"first", b"second"):
        publish(channel, queue, body, headers={"x-overtake-id": "a1"})
    assert get_all(channel, queue) == [b"first"]


def test_who_comes_back_too_often_is_dead(channel):
    graveyard = declare(channel)
    queue = declare(channel, x_delivery_limit=2, x_dead_letter_exchange="", x_dead_letter_routing_key=graveyard)
    publish(channel, queue, b"poison")
    counts = []
    for _ in range(3):
        delivery = get(channel, queue)
        counts.append((delivery.properties.headers or {}).get("x-delivery-count", 0))
        channel.basic_nack(delivery.method.delivery_tag, requeue=True)
    [dead] = take(channel, graveyard, 1)
    assert counts == [0, 1, 2]
    assert dead.properties.headers["x-death"][0]["reason"] == "delivery_limit"


def test_urgent_reaches_a_consumer_whose_window_is_full_of_bulk(channel, queue):
    publish(channel, queue, b"bulk 1", b"bulk 2", priority=0)
    round_trip(channel)
    channel.basic_qos(prefetch_count=1)
    inbox = Inbox(channel, queue, arguments={"x-urgent-credit": {"from": 7, "messages": 1}}).wait(1)
    publish(channel, queue, b"urgent", priority=9)
    assert inbox.wait(2).bodies() == [b"bulk 1", b"urgent"]
    depth_becomes(channel, queue, 1)


def test_a_queue_bounds_what_is_out_over_all_its_consumers(connection, channel):
    queue = declare(channel, x_max_active=3)
    inboxes = [Inbox(connection.channel(), queue) for _ in range(2)]
    publish(channel, queue, *(b"%d" % turn for turn in range(10)))
    depth_becomes(channel, queue, 7)
    wait_until(connection, lambda: sum(map(len, inboxes)) == 3)
    [busy, *_] = [inbox for inbox in inboxes if inbox]
    busy.channel.basic_ack(busy[0].method.delivery_tag)
    wait_until(connection, lambda: sum(map(len, inboxes)) == 4)
    depth_becomes(channel, queue, 6)


def test_bulk_never_holds_every_slot(channel):
    queue = declare(channel, x_max_priority=9, x_max_active=3, x_lane_caps={"1": 2})
    publish(channel, queue, *(b"bulk %d" % turn for turn in range(5)), priority=1)
    inbox = Inbox(channel, queue).wait(2)
    depth_becomes(channel, queue, 3)
    publish(channel, queue, b"urgent", priority=9)
    assert inbox.wait(3).bodies() == [b"bulk 0", b"bulk 1", b"urgent"]


def test_what_is_delayed_comes_when_it_is_due(channel, name):
    channel.exchange_declare(name, "x-delayed-message", auto_delete=True, arguments={"x-delayed-type": "direct"})
    queue = declare(channel)
    channel.queue_bind(queue, name, "key")
    for delay in (900, 300, 600):
        publish(channel, "key", b"%d" % delay, exchange=name, headers={"x-delay": delay})
    publish(channel, "key", b"now", exchange=name)
    assert bodies(take(channel, queue, 4)) == [b"now", b"300", b"600", b"900"]


def test_a_key_always_finds_the_same_queue(channel, name):
    channel.exchange_declare(name, "x-consistent-hash", auto_delete=True)
    queues = [declare(channel) for _ in range(4)]
    for queue in queues:
        channel.queue_bind(queue, name, "1")
    for turn in range(200):
        publish(channel, f"customer-{turn % 20}", b"%d" % (turn % 20), exchange=name)
    got = [get_all(channel, queue) for queue in queues]
    assert sum(map(len, got)) == 200
    assert sum(len(set(one)) for one in got) == 20


def test_of_a_key_only_the_newest_waits(channel):
    queue = declare(channel, x_last_value="key")
    for key, body in (("a", b"a1"), ("b", b"b1"), ("a", b"a2")):
        publish(channel, queue, body, headers={"x-overtake-key": key})
    assert sorted(get_all(channel, queue)) == [b"a2", b"b1"]


def test_who_says_nothing_may_count_as_more_than_the_least(channel):
    queue = declare(channel, x_max_priority=9, x_default_priority=3)
    publish(channel, queue, b"one", priority=1)
    publish(channel, queue, b"none")
    publish(channel, queue, b"five", priority=5)
    assert get_all(channel, queue) == [b"five", b"none", b"one"]
