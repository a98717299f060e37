"""Urgent work overtakes bulk work, and nothing else changes its place."""

import pytest
from words import Inbox, bodies, channel_closes, declare, depth_becomes, get, get_all, publish, round_trip, take


@pytest.fixture
def queue(channel):
    return declare(channel, x_max_priority=9)


def test_urgent_overtakes_bulk_and_each_priority_keeps_its_order(channel, queue):
    for turn in range(20):
        for priority in (0, 5, 9, 1):
            publish(channel, queue, f"{priority}.{turn:02}".encode(), priority=priority)
    got = bodies(take(channel, queue, 80))
    assert got == [f"{priority}.{turn:02}".encode() for priority in (9, 5, 1, 0) for turn in range(20)]


def test_ten_levels_are_ten_levels(channel, queue):
    for priority in (3, 1, 4, 9, 5, 2, 6, 0, 8, 7):
        publish(channel, queue, b"%d" % priority, priority=priority)
    assert get_all(channel, queue) == [b"%d" % priority for priority in range(9, -1, -1)]


def test_a_priority_above_the_maximum_counts_as_the_maximum(channel):
    queue = declare(channel, x_max_priority=3)
    publish(channel, queue, b"three", priority=3)
    publish(channel, queue, b"two hundred", priority=200)
    publish(channel, queue, b"two", priority=2)
    assert get_all(channel, queue) == [b"three", b"two hundred", b"two"]


def test_the_property_arrives_as_it_was_sent(channel):
    queue = declare(channel, x_max_priority=3)
    publish(channel, queue, b"", priority=200)
    assert get(channel, queue).properties.priority == 200


def test_no_priority_is_the_lowest(channel, queue):
    publish(channel, queue, b"none")
    publish(channel, queue, b"zero", priority=0)
    publish(channel, queue, b"one", priority=1)
    assert get_all(channel, queue) == [b"one", b"none", b"zero"]


def test_without_levels_a_queue_is_first_in_first_out_and_the_property_travels(channel):
    queue = declare(channel)
    publish(channel, queue, b"bulk", priority=1)
    publish(channel, queue, b"urgent", priority=9)
    got = take(channel, queue, 2)
    assert [(one.body, one.properties.priority) for one in got] == [(b"bulk", 1), (b"urgent", 9)]


def test_what_becomes_urgent_while_a_consumer_works_is_next(channel, other_channel):
    queue = other_channel.queue_declare("", auto_delete=True, arguments={"x-max-priority": 9}).method.queue
    other_channel.confirm_delivery()
    publish(other_channel, queue, *(b"bulk %d" % turn for turn in range(10)), priority=0)
    channel.basic_qos(prefetch_count=1)
    inbox = Inbox(channel, queue).wait(1)
    publish(other_channel, queue, b"urgent", priority=9)
    channel.basic_ack(inbox[0].method.delivery_tag)
    assert inbox.wait(2).bodies() == [b"bulk 0", b"urgent"]
    channel.basic_ack(inbox[1].method.delivery_tag)
    assert inbox.wait(3).bodies()[2] == b"bulk 1"


def test_what_is_put_back_keeps_its_place(channel, queue):
    publish(channel, queue, b"bulk 1", b"bulk 2", priority=1)
    first = get(channel, queue)
    publish(channel, queue, b"urgent", priority=9)
    channel.basic_nack(first.method.delivery_tag, requeue=True)
    got = take(channel, queue, 3)
    assert bodies(got) == [b"urgent", b"bulk 1", b"bulk 2"]
    assert [one.method.redelivered for one in got] == [False, True, False]


def test_a_lost_consumer_puts_everything_back_in_its_place(channel, connect):
    gone = connect()
    queue = channel.queue_declare("", auto_delete=False, arguments={"x-max-priority": 9}).method.queue
    for priority in (1, 9, 5, 1, 9, 5):
        publish(channel, queue, b"%d" % priority, priority=priority)
    Inbox(gone.channel(), queue).wait(6)
    depth_becomes(channel, queue, 0)
    gone.close()
    assert bodies(take(channel, queue, 6)) == [b"9", b"9", b"5", b"5", b"1", b"1"]
    channel.queue_delete(queue)


def test_a_dead_letter_keeps_its_priority(channel, queue):
    work = declare(channel, x_max_priority=9, x_dead_letter_exchange="", x_dead_letter_routing_key=queue)
    publish(channel, work, b"bulk", priority=1)
    publish(channel, work, b"urgent", priority=9)
    tags = [get(channel, work).method.delivery_tag for _ in range(2)]
    for tag in reversed(tags):
        channel.basic_reject(tag, requeue=False)
    depth_becomes(channel, queue, 2)
    assert bodies(take(channel, queue, 2)) == [b"urgent", b"bulk"]


def test_levels_are_part_of_what_a_queue_is(connection, channel, name):
    channel.queue_declare(name, exclusive=True, arguments={"x-max-priority": 9})
    with channel_closes(406, "x-max-priority"):
        channel.queue_declare(name, exclusive=True, arguments={"x-max-priority": 8})
    again = connection.channel()
    assert again.queue_declare(name, exclusive=True, arguments={"x-max-priority": 9}).method.queue == name


def test_a_window_holds_the_most_urgent(channel, queue):
    for priority in range(10):
        publish(channel, queue, b"%d" % priority, priority=priority)
    round_trip(channel)
    channel.basic_qos(prefetch_count=3)
    inbox = Inbox(channel, queue).wait(3)
    round_trip(channel)
    assert inbox.bodies() == [b"9", b"8", b"7"]
