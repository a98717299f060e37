"""A dead letter says where it died, why, and how often."""

import datetime

import pytest
from words import Inbox, bodies, declare, depth_becomes, get, get_all, publish, round_trip, take


@pytest.fixture
def graveyard(channel):
    return declare(channel)


@pytest.fixture
def queue(channel, graveyard):
    return declare(channel, x_dead_letter_exchange="", x_dead_letter_routing_key=graveyard)


def kill(channel, queue):
    channel.basic_reject(get(channel, queue).method.delivery_tag, requeue=False)


def test_a_rejected_message_says_so(channel, graveyard, queue):
    publish(channel, queue, b"a", headers={"mine": 1}, message_id="m-1", priority=3, delivery_mode=2)
    kill(channel, queue)
    [dead] = take(channel, graveyard, 1)
    headers = dead.properties.headers
    [death] = headers["x-death"]
    assert isinstance(death.pop("time"), datetime.datetime)
    assert death == {"count": 1, "reason": "rejected", "queue": queue, "exchange": "", "routing-keys": [queue]}
    assert headers["mine"] == 1
    first = {"x-first-death-exchange": "", "x-first-death-queue": queue, "x-first-death-reason": "rejected"}
    assert first.items() <= headers.items()
    assert (dead.properties.message_id, dead.properties.priority) == ("m-1", 3)
    assert dead.properties.delivery_mode == 2


def test_it_keeps_its_routing_key_unless_the_queue_has_another(channel, name):
    channel.exchange_declare(name, "fanout", auto_delete=True)
    graveyard = declare(channel)
    channel.queue_bind(graveyard, name)
    plain = declare(channel, x_dead_letter_exchange=name)
    renamed = declare(channel, x_dead_letter_exchange=name, x_dead_letter_routing_key="other")
    for queue in (plain, renamed):
        publish(channel, queue, b"")
        kill(channel, queue)
    keys = [dead.method.routing_key for dead in take(channel, graveyard, 2)]
    assert keys == [plain, "other"]


def test_who_dies_again_in_the_same_way_counts_up(channel, name):
    """A retry loop: refused, it waits in another queue, and comes back when its time there is over."""
    waiting = declare(channel, x_message_ttl=20, x_dead_letter_exchange="", x_dead_letter_routing_key=name)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": waiting}
    channel.queue_declare(name, exclusive=True, arguments=arguments)
    publish(channel, name, b"a")
    inbox = Inbox(channel, name)
    for turn in range(1, 4):
        channel.basic_reject(inbox.wait(turn)[-1].method.delivery_tag, requeue=False)
    last = inbox.wait(4)[-1]
    deaths = {death["queue"]: death["count"] for death in last.properties.headers["x-death"]}
    assert deaths == {name: 3, waiting: 3}


def test_the_latest_death_stands_first(channel, graveyard):
    second = declare(channel, x_dead_letter_exchange="", x_dead_letter_routing_key=graveyard)
    first = declare(channel, x_message_ttl=20, x_dead_letter_exchange="", x_dead_letter_routing_key=second)
    publish(channel, first, b"a")
    [expired] = Inbox(channel, second).wait(1)
    channel.basic_reject(expired.method.delivery_tag, requeue=False)
    [dead] = take(channel, graveyard, 1)
    deaths = [(death["queue"], death["reason"]) for death in dead.properties.headers["x-death"]]
    assert deaths == [(second, "rejected"), (first, "expired")]
    assert dead.properties.headers["x-first-death-queue"] == first


def test_what_a_full_queue_gives_up_died_of_its_length(channel, graveyard):
    queue = declare(channel, x_max_length=1, x_dead_letter_exchange="", x_dead_letter_routing_key=graveyard)
    publish(channel, queue, b"old", b"new")
    [dead] = take(channel, graveyard, 1)
    assert (dead.body, dead.properties.headers["x-death"][0]["reason"]) == (b"old", "maxlen")
    assert get_all(channel, queue) == [b"new"]


def test_a_circle_without_a_reject_ends(channel, name):
    """Expired back into the queue it expired from: dropped the second time, not carried around for ever."""
    marker = declare(channel)
    arguments = {"x-message-ttl": 20, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": name}
    channel.queue_declare(name, exclusive=True, arguments=arguments)
    later = declare(channel, x_message_ttl=200, x_dead_letter_exchange="", x_dead_letter_routing_key=marker)
    publish(channel, name, b"round")
    publish(channel, later, b"by now")
    take(channel, marker, 1)
    depth_becomes(channel, name, 0)


def test_all_routing_keys_are_in_the_history(channel, graveyard, queue):
    publish(channel, queue, b"", headers={"CC": ["second", "third"]})
    kill(channel, queue)
    [dead] = take(channel, graveyard, 1)
    assert dead.properties.headers["x-death"][0]["routing-keys"] == [queue, "second", "third"]


def test_without_a_place_for_it_a_dead_letter_is_gone(channel, name):
    queue = declare(channel, x_dead_letter_exchange=name)
    publish(channel, queue, b"a")
    kill(channel, queue)
    round_trip(channel)
    depth_becomes(channel, queue, 0)


def test_dead_letters_come_in_the_order_of_their_death(channel, graveyard, queue):
    publish(channel, queue, b"a", b"b", b"c")
    tags = [get(channel, queue).method.delivery_tag for _ in range(3)]
    channel.basic_nack(tags[-1], multiple=True, requeue=False)
    assert bodies(take(channel, graveyard, 3)) == [b"a", b"b", b"c"]
