"""What was lent is settled or comes back to its own place."""

import pytest
from words import (
    Inbox,
    bodies,
    channel_closes,
    declare,
    depth,
    depth_becomes,
    get,
    get_all,
    publish,
    round_trip,
    take,
    wait_until,
)


@pytest.fixture
def queue(channel):
    return declare(channel)


def test_a_window_is_never_exceeded(channel, queue):
    publish(channel, queue, *(b"%d" % turn for turn in range(10)))
    channel.basic_qos(prefetch_count=3)
    inbox = Inbox(channel, queue).wait(3)
    channel.basic_ack(inbox[0].method.delivery_tag)
    inbox.wait(4)
    depth_becomes(channel, queue, 6)
    assert inbox.bodies() == [b"0", b"1", b"2", b"3"]


def test_one_ack_of_many_opens_the_whole_window(channel, queue):
    publish(channel, queue, *(b"%d" % turn for turn in range(10)))
    channel.basic_qos(prefetch_count=5)
    inbox = Inbox(channel, queue).wait(5)
    channel.basic_ack(inbox[4].method.delivery_tag, multiple=True)
    assert inbox.wait(10).bodies() == [b"%d" % turn for turn in range(10)]


def test_tag_zero_of_many_is_all(channel, queue):
    publish(channel, queue, b"a", b"b", b"c")
    for _ in range(3):
        get(channel, queue)
    channel.basic_ack(0, multiple=True)
    channel.basic_recover(requeue=True)
    depth_becomes(channel, queue, 0)


def test_a_window_of_the_channel_counts_for_all_its_consumers(channel, queue):
    second = declare(channel)
    publish(channel, queue, b"a", b"b", b"c")
    publish(channel, second, b"d", b"e", b"f")
    channel.basic_qos(prefetch_count=2, global_qos=True)
    one, two = Inbox(channel, queue), Inbox(channel, second)
    round_trip(channel.connection.channel())
    channel.connection.process_data_events(time_limit=0)
    wait_until(channel.connection, lambda: depth(channel, queue) + depth(channel, second) == 4)
    assert len(one) + len(two) == 2


def test_a_window_of_a_consumer_is_its_own(channel, queue):
    second = declare(channel)
    publish(channel, queue, b"a", b"b", b"c")
    publish(channel, second, b"d", b"e", b"f")
    channel.basic_qos(prefetch_count=1)
    one = Inbox(channel, queue)
    channel.basic_qos(prefetch_count=2)
    two = Inbox(channel, second)
    one.wait(1), two.wait(2)
    depth_becomes(channel, queue, 2)
    depth_becomes(channel, second, 1)


def test_a_nack_puts_back_and_says_redelivered(channel, queue):
    publish(channel, queue, b"again")
    first = get(channel, queue)
    channel.basic_nack(first.method.delivery_tag)
    second = get(channel, queue)
    assert (first.method.redelivered, second.method.redelivered) == (False, True)
    assert second.body == b"again"


def test_what_is_put_back_is_ahead_of_what_came_later(channel, queue):
    publish(channel, queue, b"a", b"b", b"c", b"d")
    lent = [get(channel, queue) for _ in range(3)]
    channel.basic_reject(lent[1].method.delivery_tag, requeue=True)
    channel.basic_reject(lent[0].method.delivery_tag, requeue=True)
    assert get_all(channel, queue) == [b"a", b"b", b"d"]


def test_a_nack_of_many_puts_all_back_in_order(channel, queue):
    publish(channel, queue, b"a", b"b", b"c", b"d")
    lent = [get(channel, queue) for _ in range(3)]
    channel.basic_nack(lent[1].method.delivery_tag, multiple=True, requeue=True)
    assert get_all(channel, queue) == [b"a", b"b", b"d"]


def test_a_reject_without_requeue_is_the_end(channel, queue):
    publish(channel, queue, b"a", b"b")
    channel.basic_reject(get(channel, queue).method.delivery_tag, requeue=False)
    assert get_all(channel, queue) == [b"b"]


def test_a_closed_channel_puts_back(channel, connection, queue):
    publish(channel, queue, b"a", b"b")
    closing = connection.channel()
    Inbox(closing, queue).wait(2)
    closing.close()
    got = take(channel, queue, 2)
    assert bodies(got) == [b"a", b"b"]
    assert all(one.method.redelivered for one in got)


def test_a_cancelled_consumer_may_still_settle(channel, queue):
    publish(channel, queue, b"a", b"b")
    inbox = Inbox(channel, queue).wait(2)
    channel.basic_cancel(inbox.tag)
    depth_becomes(channel, queue, 0)
    channel.basic_ack(inbox[1].method.delivery_tag, multiple=True)
    channel.basic_recover(requeue=True)
    depth_becomes(channel, queue, 0)


def test_recover_puts_back_what_is_out(channel, queue):
    publish(channel, queue, b"a", b"b", b"c")
    channel.basic_ack(get(channel, queue).method.delivery_tag)
    get(channel, queue)
    channel.basic_recover(requeue=True)
    got = take(channel, queue, 2)
    assert [(one.body, one.method.redelivered) for one in got] == [(b"b", True), (b"c", False)]


def test_a_tag_that_was_never_given_costs_the_channel(channel):
    with channel_closes(406, "unknown delivery tag 7"):
        channel.basic_ack(7)
        round_trip(channel)


def test_an_ack_too_many_costs_the_channel(channel, queue):
    publish(channel, queue, b"a")
    tag = get(channel, queue).method.delivery_tag
    channel.basic_ack(tag)
    with channel_closes(406, f"unknown delivery tag {tag}"):
        channel.basic_ack(tag)
        round_trip(channel)


def test_without_acknowledgements_nothing_comes_back(channel, connection, queue):
    publish(channel, queue, b"a", b"b")
    closing = connection.channel()
    Inbox(closing, queue, auto_ack=True).wait(2)
    closing.close()
    depth_becomes(channel, queue, 0)
