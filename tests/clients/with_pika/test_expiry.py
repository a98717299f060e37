"""What has expired is never delivered, and goes where dead letters go."""

import pytest
from words import (
    Inbox,
    bodies,
    channel_closes,
    declare,
    depth_becomes,
    get_all,
    publish,
    round_trip,
    take,
    wait_until,
)


@pytest.fixture
def graveyard(channel):
    return declare(channel)


@pytest.fixture
def declare_mortal(channel, graveyard):
    """A queue whose dead go to the graveyard."""

    def declare_mortal(**arguments):
        return declare(channel, x_dead_letter_exchange="", x_dead_letter_routing_key=graveyard, **arguments)

    return declare_mortal


def test_a_message_has_its_own_time(channel, graveyard, declare_mortal):
    queue = declare_mortal()
    publish(channel, queue, b"short", expiration="50")
    publish(channel, queue, b"for ever")
    [dead] = take(channel, graveyard, 1)
    assert dead.body == b"short"
    assert dead.properties.expiration is None
    [death] = dead.properties.headers["x-death"]
    assert (death["reason"], death["queue"], death["original-expiration"]) == ("expired", queue, "50")
    assert get_all(channel, queue) == [b"for ever"]


def test_a_queue_has_a_time_for_all(channel, graveyard, declare_mortal):
    queue = declare_mortal(x_message_ttl=50)
    publish(channel, queue, b"a", b"b", b"c")
    assert bodies(take(channel, graveyard, 3)) == [b"a", b"b", b"c"]
    depth_becomes(channel, queue, 0)


def test_the_shorter_of_the_two_counts(channel, graveyard, declare_mortal):
    patient, hasty = declare_mortal(x_message_ttl=3_600_000), declare_mortal(x_message_ttl=50)
    publish(channel, patient, b"its own", expiration="50")
    publish(channel, hasty, b"the queue's", expiration="3600000")
    assert sorted(bodies(take(channel, graveyard, 2))) == [b"its own", b"the queue's"]


def test_no_time_at_all_means_now_or_never(channel, graveyard, declare_mortal):
    queue = declare_mortal()
    publish(channel, queue, b"never", expiration="0")
    assert bodies(take(channel, graveyard, 1)) == [b"never"]
    inbox = Inbox(channel, queue)
    publish(channel, queue, b"now", expiration="0")
    assert inbox.wait(1).bodies() == [b"now"]


def test_what_is_lent_does_not_expire_and_what_is_put_back_does(channel, graveyard, declare_mortal):
    queue = declare_mortal(x_message_ttl=100)
    channel.basic_qos(prefetch_count=1)
    inbox = Inbox(channel, queue)
    publish(channel, queue, b"lent", b"waits")
    # When the second has died the first one's time is over too.
    assert bodies(take(channel, graveyard, 1)) == [b"waits"]
    assert inbox.wait(1).bodies() == [b"lent"]
    channel.basic_cancel(inbox.tag)
    channel.basic_nack(inbox[0].method.delivery_tag, requeue=True)
    assert bodies(take(channel, graveyard, 1)) == [b"lent"]


@pytest.mark.ours
def test_an_expired_bulk_message_does_not_wait_behind_a_live_urgent_one(channel, graveyard, declare_mortal):
    queue = declare_mortal(x_max_priority=9)
    publish(channel, queue, b"bulk", priority=1, expiration="50")
    publish(channel, queue, b"urgent", priority=9)
    assert bodies(take(channel, graveyard, 1)) == [b"bulk"]
    assert get_all(channel, queue) == [b"urgent"]


@pytest.mark.ours
def test_an_expired_message_does_not_wait_behind_a_live_one_of_its_own_priority(channel, graveyard, declare_mortal):
    queue = declare_mortal()
    publish(channel, queue, b"for ever")
    publish(channel, queue, b"short", expiration="50")
    assert bodies(take(channel, graveyard, 1)) == [b"short"]


def test_a_queue_that_nobody_uses_goes(connection, channel, name):
    channel.queue_declare(name, arguments={"x-expires": 200})
    returned = []
    channel.add_on_return_callback(lambda *back: returned.append(back))

    # To publish is not to use: once the queue is gone, the message comes back.
    def has_gone():
        channel.basic_publish("", name, b"", mandatory=True)
        round_trip(channel)
        return returned

    wait_until(connection, has_gone)


def test_a_queue_with_a_consumer_is_used(channel, name):
    clock = declare(channel)
    ticking = declare(channel, x_message_ttl=1500, x_dead_letter_exchange="", x_dead_letter_routing_key=clock)
    channel.queue_declare(name, arguments={"x-expires": 1000})
    inbox = Inbox(channel, name)
    publish(channel, ticking, b"later")
    take(channel, clock, 1)
    publish(channel, name, b"still there")
    assert inbox.wait(1).bodies() == [b"still there"]
    channel.queue_delete(name)


@pytest.mark.parametrize("expiration", ["soon", "-1", "1.5", ""])
def test_a_time_that_is_none_costs_the_channel(channel, expiration):
    queue = declare(channel)
    with channel_closes(406, "invalid expiration"):
        publish(channel, queue, b"", expiration=expiration)
        round_trip(channel)
