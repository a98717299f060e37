"""A queue with a limit never holds more, and somebody pays."""

import pytest
from pika.exceptions import NackError
from words import bodies, declare, depth_becomes, get_all, publish, take


def test_the_oldest_makes_room(channel):
    queue = declare(channel, x_max_length=3)
    publish(channel, queue, *(b"%d" % turn for turn in range(10)))
    assert get_all(channel, queue) == [b"7", b"8", b"9"]


def test_bytes_count_too(channel):
    queue = declare(channel, x_max_length_bytes=2500)
    bodies = [letter * 1000 for letter in (b"a", b"b", b"c")]
    publish(channel, queue, *bodies)
    assert get_all(channel, queue) == bodies[1:]


def test_what_is_lent_does_not_count(channel):
    queue = declare(channel, x_max_length=1)
    publish(channel, queue, b"a")
    method, _, _ = channel.basic_get(queue)
    publish(channel, queue, b"b")
    depth_becomes(channel, queue, 1)
    channel.basic_ack(method.delivery_tag)
    assert get_all(channel, queue) == [b"b"]


def test_a_refused_publish_can_go_where_dead_letters_go(channel):
    graveyard = declare(channel)
    queue = declare(
        channel,
        x_max_length=1,
        x_overflow="reject-publish-dlx",
        x_dead_letter_exchange="",
        x_dead_letter_routing_key=graveyard,
    )
    channel.confirm_delivery()
    publish(channel, queue, b"a")
    with pytest.raises(NackError):
        publish(channel, queue, b"b")
    [dead] = take(channel, graveyard, 1)
    assert (dead.body, dead.properties.headers["x-death"][0]["reason"]) == (b"b", "maxlen")
    assert get_all(channel, queue) == [b"a"]


def test_without_confirms_a_refused_publish_is_silent(channel):
    queue = declare(channel, x_max_length=1, x_overflow="reject-publish")
    publish(channel, queue, b"a", b"b")
    assert get_all(channel, queue) == [b"a"]
    assert channel.is_open


@pytest.mark.ours
def test_the_least_urgent_makes_room(channel):
    """RabbitMQ drops from the head, which is the most urgent."""
    queue = declare(channel, x_max_length=3, x_max_priority=9)
    publish(channel, queue, b"urgent 1", b"urgent 2", priority=9)
    publish(channel, queue, b"bulk 1", b"bulk 2", priority=0)
    publish(channel, queue, b"urgent 3", priority=9)
    assert bodies(take(channel, queue, 3)) == [b"urgent 1", b"urgent 2", b"urgent 3"]


@pytest.mark.ours
def test_what_is_less_urgent_than_all_that_waits_is_refused(channel):
    queue = declare(channel, x_max_length=1, x_max_priority=9)
    channel.confirm_delivery()
    publish(channel, queue, b"urgent", priority=9)
    with pytest.raises(NackError):
        publish(channel, queue, b"bulk", priority=0)
    assert get_all(channel, queue) == [b"urgent"]


@pytest.mark.parametrize("limit", ["x_max_length", "x_max_length_bytes"])
def test_a_limit_of_nothing_keeps_nothing_that_no_consumer_takes_at_once(channel, limit):
    queue = declare(channel, **{limit: 0})
    channel.confirm_delivery()
    publish(channel, queue, b"for nobody")
    assert get_all(channel, queue) == []


@pytest.mark.parametrize("limit", ["x_max_length", "x_max_length_bytes"])
def test_a_limit_of_nothing_refuses_all_where_what_is_new_is_refused(channel, limit):
    queue = declare(channel, x_overflow="reject-publish", **{limit: 0})
    channel.confirm_delivery()
    with pytest.raises(NackError):
        publish(channel, queue, b"for nobody")
