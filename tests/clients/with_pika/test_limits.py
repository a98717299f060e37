"""A queue with a limit never holds more, and somebody pays."""

import pytest
from pika.exceptions import NackError
from words import bodies, declare, depth_becomes, get_all, publish, take


def test_the_oldest_makes_room(channel):
    queue = declare(channel, x_max_length=3)
    publish(channel, queue, *(b"%d" % turn for turn in range(10)))
    assert get_all(channel, queue) == [b"7", b"8", b"9"]


def test_bytes_are_counted_without_headers(channel):
    queue = declare(channel, x_max_length_bytes=10)
    publish(channel, queue, b"aaaa", b"bbbb", b"cccc", headers={"long": "x" * 100})
    assert get_all(channel, queue) == [b"bbbb", b"cccc"]


def test_a_limit_of_nothing(channel):
    queue = declare(channel, x_max_length=0)
    publish(channel, queue, b"a")
    depth_becomes(channel, queue, 0)


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
