"""How a message finds its queues."""

import pytest
from words import channel_closes, connection_closes, declare, depth_becomes, get, get_all, publish, round_trip


@pytest.fixture
def exchange(channel, name):
    """Declares an exchange of a kind; it goes with its last binding."""

    def exchange(kind, suffix="", **settings):
        channel.exchange_declare(name + suffix, kind, auto_delete=True, **settings)
        return name + suffix

    return exchange


def bound(channel, exchange, key="", **arguments):
    queue = declare(channel)
    channel.queue_bind(queue, exchange, key, arguments or None)
    return queue


def test_direct_wants_the_very_key(channel, exchange):
    source = exchange("direct")
    one, two = bound(channel, source, "one"), bound(channel, source, "two")
    publish(channel, "one", b"1", exchange=source)
    publish(channel, "three", b"3", exchange=source)
    assert (get_all(channel, one), get_all(channel, two)) == ([b"1"], [])


def test_fanout_wants_everything(channel, exchange):
    source = exchange("fanout")
    queues = [bound(channel, source, key) for key in ("", "x")]
    publish(channel, "whatever", b"1", exchange=source)
    assert [get_all(channel, queue) for queue in queues] == [[b"1"], [b"1"]]


@pytest.mark.parametrize(
    ("pattern", "taken"),
    [
        ("a.b", ["a.b"]),
        ("a.*", ["a.b", "a."]),
        ("a.#", ["a", "a.b", "a.b.c", "a."]),
        ("#.c", ["a.b.c"]),
        ("*.*.*", ["a.b.c"]),
        ("#", ["", "a", "a.b", "a.b.c", "a."]),
        ("", [""]),
    ],
)
def test_topic_wants_what_its_pattern_wants(channel, exchange, pattern, taken):
    source = exchange("topic")
    queue = bound(channel, source, pattern)
    for key in ("", "a", "a.b", "a.b.c", "a."):
        publish(channel, key, key.encode(), exchange=source)
    assert get_all(channel, queue) == [key.encode() for key in taken]


def test_headers_wants_all_or_any_of_them(channel, exchange):
    source = exchange("headers")
    wants = {"colour": "red", "size": 3}
    every = bound(channel, source, **{"x-match": "all", **wants})
    some = bound(channel, source, **{"x-match": "any", **wants})
    for headers in ({"colour": "red", "size": 3}, {"colour": "red"}, {"size": 4}, {}):
        publish(channel, "", repr(headers).encode(), exchange=source, headers=headers)
    assert (len(get_all(channel, every)), len(get_all(channel, some))) == (1, 2)


def test_headers_that_begin_with_x_count_only_on_request(channel, exchange):
    source = exchange("headers")
    plain = bound(channel, source, **{"x-match": "all", "x-tenant": "a"})
    with_x = bound(channel, source, **{"x-match": "all-with-x", "x-tenant": "a"})
    publish(channel, "", b"a", exchange=source, headers={"x-tenant": "a"})
    publish(channel, "", b"b", exchange=source, headers={"x-tenant": "b"})
    assert get_all(channel, with_x) == [b"a"]
    assert get_all(channel, plain) == [b"a", b"b"]


def test_a_queue_gets_one_copy_however_many_bindings_lead_to_it(channel, exchange):
    source = exchange("topic")
    queue = bound(channel, source, "#")
    channel.queue_bind(queue, source, "a.*")
    publish(channel, "a.b", b"once", exchange=source)
    assert get_all(channel, queue) == [b"once"]


def test_an_exchange_feeds_an_exchange(channel, exchange):
    source, target = exchange("topic", "-source"), exchange("fanout", "-target")
    channel.exchange_bind(target, source, "urgent.#")
    queue = bound(channel, target)
    publish(channel, "urgent.mail", b"1", exchange=source)
    publish(channel, "bulk.mail", b"2", exchange=source)
    assert get_all(channel, queue) == [b"1"]
    channel.exchange_unbind(target, source, "urgent.#")
    with channel_closes(404, "no exchange"):
        publish(channel, "urgent.mail", b"3", exchange=source)
        round_trip(channel)


def test_a_circle_of_exchanges_does_no_harm(channel, exchange):
    one, two = exchange("fanout", "-one"), exchange("fanout", "-two")
    channel.exchange_bind(one, two)
    channel.exchange_bind(two, one)
    queue = bound(channel, two)
    publish(channel, "", b"once", exchange=one)
    assert get_all(channel, queue) == [b"once"]
    channel.exchange_delete(one)


def test_what_nobody_wants_goes_to_the_alternate(channel, exchange):
    rest = exchange("fanout", "-rest")
    source = exchange("direct", "-source", arguments={"alternate-exchange": rest})
    wanted, unwanted = bound(channel, source, "wanted"), bound(channel, rest)
    returned = []
    channel.add_on_return_callback(lambda *back: returned.append(back))
    for key in ("wanted", "strange"):
        channel.basic_publish(source, key, key.encode(), mandatory=True)
    assert (get_all(channel, wanted), get_all(channel, unwanted)) == ([b"wanted"], [b"strange"])
    assert returned == []


def test_a_binding_that_is_taken_away_takes_nothing(channel, exchange):
    source = exchange("direct")
    queue, _ = bound(channel, source, "key"), bound(channel, source, "other")
    channel.queue_unbind(queue, source, "key")
    publish(channel, "key", b"1", exchange=source)
    depth_becomes(channel, queue, 0)


def test_copies_for_further_keys_and_one_that_nobody_sees(channel):
    to, cc, bcc = declare(channel), declare(channel), declare(channel)
    publish(channel, to, b"1", headers={"CC": [cc, to], "BCC": [bcc]})
    got = [get(channel, queue) for queue in (to, cc, bcc)]
    assert [one.body for one in got] == [b"1"] * 3
    assert got[0].properties.headers == {"CC": [cc, to]}
    assert got[2].method.routing_key == to
    assert get_all(channel, to) == []


def test_further_keys_that_are_no_list_cost_the_channel(channel):
    with channel_closes(406, "CC"):
        publish(channel, "nowhere", b"", headers={"CC": "not a list"})
        round_trip(channel)


def test_an_exchange_that_is_internal_takes_no_publishes(channel, exchange):
    source = exchange("fanout", internal=True)
    with channel_closes(403, "internal exchange"):
        publish(channel, "", b"", exchange=source)
        round_trip(channel)


def test_an_exchange_that_is_not_there(connection, name):
    with channel_closes(404, f"no exchange '{name}' in vhost '/'"):
        channel = connection.channel()
        publish(channel, "", b"", exchange=name)
        round_trip(channel)
    with channel_closes(404, f"no exchange '{name}' in vhost '/'"):
        connection.channel().exchange_declare(name, passive=True)


def test_an_exchange_with_another_kind_is_another_exchange(channel, exchange):
    source = exchange("direct")
    with channel_closes(406, f"inequivalent arg 'type' for exchange '{source}' in vhost '/'"):
        channel.exchange_declare(source, "fanout", auto_delete=True)


def test_an_exchange_in_use_is_not_deleted_if_unused(connection, channel, exchange):
    source = exchange("direct")
    bound(channel, source, "key")
    with channel_closes(406, "in use"):
        channel.exchange_delete(source, if_unused=True)
    connection.channel().exchange_delete(source)


def test_an_auto_delete_exchange_goes_with_its_last_binding(connection, channel, exchange):
    source = exchange("direct")
    queue = bound(channel, source, "key")
    channel.exchange_declare(source, passive=True)
    channel.queue_delete(queue)
    with channel_closes(404):
        channel.exchange_declare(source, passive=True)


def test_the_exchanges_that_are_always_there(channel):
    for kind in ("direct", "fanout", "topic", "headers"):
        channel.exchange_declare(f"amq.{kind}", kind, passive=True)
    channel.exchange_declare("amq.match", "headers", passive=True)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda channel, queue: channel.exchange_declare("amq.mine", "direct"),
        lambda channel, queue: channel.exchange_delete("amq.direct"),
        lambda channel, queue: channel.exchange_delete(""),
        lambda channel, queue: channel.queue_bind(queue, "", "key"),
        lambda channel, queue: channel.exchange_declare("", "direct"),
    ],
    ids=["declare-amq", "delete-amq", "delete-default", "bind-default", "declare-default"],
)
def test_what_belongs_to_the_broker_is_left_alone(channel, attempt):
    queue = declare(channel)
    with channel_closes(403, "ACCESS_REFUSED"):
        attempt(channel, queue)


def test_a_kind_that_nobody_knows_costs_the_connection(connection, name):
    with connection_closes(503, "unknown exchange type 'psychic'"):
        connection.channel().exchange_declare(name, "psychic")
