"""py-amqp, the heir of Python's amqplib, which Kombu and Celery speak through."""

import socket
import urllib.parse

import amqp
import pytest
from amqp.exceptions import (
    AccessRefused,
    MessageNacked,
    NotFound,
    PreconditionFailed,
    ResourceLocked,
)

GUARD_S = 30


@pytest.fixture
def connect(url):
    target = urllib.parse.urlsplit(url)
    opened = []

    def connect(**settings):
        settings = {"userid": target.username or "guest", "password": target.password or "guest", **settings}
        connection = amqp.Connection(f"{target.hostname}:{target.port}", **settings)
        opened.append(connection)
        connection.connect()
        return connection

    yield connect
    for connection in opened:
        connection.collect() if not connection.connected else connection.close()


@pytest.fixture
def channel(connect):
    return connect().channel()


def declare(channel, **arguments):
    arguments = {key.replace("_", "-"): value for key, value in arguments.items()}
    return channel.queue_declare(exclusive=True, arguments=arguments).queue


def publish(channel, queue, *bodies, **properties):
    for body in bodies:
        channel.basic_publish(amqp.Message(body, **properties), routing_key=queue)


def get_all(channel, queue):
    bodies = []
    while (message := channel.basic_get(queue, no_ack=True)) is not None:
        bodies.append(message.body)
    return bodies


def test_urgent_overtakes_bulk(channel):
    queue = declare(channel, x_max_priority=9)
    for number in range(50):
        publish(channel, queue, str(number % 10), priority=number % 10)
    assert get_all(channel, queue) == [str(priority) for priority in range(9, -1, -1) for _ in range(5)]


def test_a_window_of_one_and_something_urgent(connect):
    channel = connect(confirm_publish=True).channel()
    queue = declare(channel, x_max_priority=9)
    publish(channel, queue, "bulk 1", "bulk 2", priority=1)
    got = []

    def work(message):
        got.append(message.body)
        if len(got) == 1:
            publish(channel, queue, "urgent", priority=9)
        channel.basic_ack(message.delivery_tag)

    channel.basic_qos(0, 1, False)
    channel.basic_consume(queue, callback=work)
    while len(got) < 3:
        channel.connection.drain_events(timeout=GUARD_S)
    assert got == ["bulk 1", "urgent", "bulk 2"]


def test_with_confirms_a_publish_waits_for_the_answer(connect):
    channel = connect(confirm_publish=True).channel()
    queue = declare(channel, x_max_length=1, x_overflow="reject-publish")
    publish(channel, queue, "a")
    with pytest.raises(MessageNacked):
        publish(channel, queue, "b")
    assert get_all(channel, queue) == ["a"]


def test_what_is_put_back_keeps_its_place(channel):
    queue = declare(channel)
    publish(channel, queue, "a", "b", "c")
    first = channel.basic_get(queue)
    channel.basic_get(queue)
    channel.basic_reject(first.delivery_tag, requeue=True)
    assert get_all(channel, queue) == ["a", "c"]


def test_recover_the_synchronous_way(channel):
    queue = declare(channel)
    publish(channel, queue, "a", "b")
    channel.basic_get(queue)
    channel.basic_recover(requeue=True)
    assert get_all(channel, queue) == ["a", "b"]


def test_a_dead_letter_tells_its_story(channel):
    graveyard = declare(channel)
    queue = declare(channel, x_dead_letter_exchange="", x_dead_letter_routing_key=graveyard, x_message_ttl=50)
    publish(channel, queue, "a")
    got = []
    channel.basic_consume(graveyard, callback=got.append)
    while not got:
        channel.connection.drain_events(timeout=GUARD_S)
    [death] = got[0].headers["x-death"]
    assert (death["reason"], death["queue"], death["count"]) == ("expired", queue, 1)


def test_a_transaction(channel, connect):
    queue = declare(channel)
    channel.tx_select()
    publish(channel, queue, "kept")
    channel.tx_commit()
    publish(channel, queue, "dropped")
    channel.tx_rollback()
    assert get_all(channel, queue) == ["kept"]


def test_what_nobody_wants_comes_back(channel):
    returned = []
    channel.events["basic_return"].add(lambda *back: returned.append(back))
    channel.basic_publish(amqp.Message("lost"), routing_key="nobody at all", mandatory=True)
    channel.basic_qos(0, 0, False)
    [(why, exchange, key, message)] = returned
    assert (why.reply_code, why.reply_text, exchange, key) == (312, "NO_ROUTE", "", "nobody at all")
    assert message.body == "lost"


def test_a_consumer_is_told_that_its_queue_is_gone(channel):
    queue = declare(channel)
    told = []
    tag = channel.basic_consume(queue, callback=print, on_cancel=told.append)
    channel.connection.channel().queue_delete(queue)
    while not told:
        channel.connection.drain_events(timeout=GUARD_S)
    assert told == [tag]


def test_errors_have_their_names(connect, name):
    connection, other = connect(), connect()
    with pytest.raises(NotFound):
        connection.channel().queue_declare(name, passive=True)
    connection.channel().queue_declare(name, exclusive=True)
    with pytest.raises(PreconditionFailed):
        connection.channel().queue_declare(name, exclusive=True, arguments={"x-max-priority": 3})
    with pytest.raises(ResourceLocked):
        other.channel().queue_declare(name, exclusive=True)
    with pytest.raises(AccessRefused):
        connection.channel().exchange_declare("amq.mine", "direct")


def test_exchanges_feed_exchanges(channel, name):
    channel.exchange_declare(name + "-source", "topic", auto_delete=True)
    channel.exchange_declare(name + "-target", "fanout", auto_delete=True)
    channel.exchange_bind(name + "-target", name + "-source", "urgent.#")
    queue = declare(channel)
    channel.queue_bind(queue, name + "-target")
    for key in ("urgent.mail", "bulk.mail"):
        channel.basic_publish(amqp.Message(key), name + "-source", key)
    assert get_all(channel, queue) == ["urgent.mail"]


def test_the_other_way_to_log_in(connect):
    assert connect(login_method="AMQPLAIN").channel().is_open
    with pytest.raises(AccessRefused):
        connect(login_method="AMQPLAIN", password="wrong")


def test_who_falls_silent_is_cut_off_and_what_he_had_comes_back(connect):
    """A client that agreed to heartbeats and sends none, with a message in hand."""
    # With confirms: without them another connection's get may come before the publish.
    channel = connect(confirm_publish=True).channel()
    queue = channel.queue_declare(auto_delete=False, exclusive=False).queue
    publish(channel, queue, "in hand")
    silent = connect(heartbeat=1)
    assert silent.channel().basic_get(queue).body == "in hand"
    assert get_all(channel, queue) == []
    silent.sock.settimeout(GUARD_S)
    # The broker's heartbeats, then its end of the line.
    with pytest.raises(OSError):
        while True:
            silent.drain_events(timeout=GUARD_S)
    got = []
    tag = channel.basic_consume(queue, callback=got.append)
    while not got:
        channel.connection.drain_events(timeout=GUARD_S)
    channel.basic_cancel(tag)
    assert (got[0].body, got[0].delivery_info["redelivered"]) == ("in hand", True)
    channel.queue_delete(queue)


def test_who_sends_heartbeats_stays(connect):
    """Quiet for twice as long as silence is borne, but for heartbeats."""
    connection = connect(heartbeat=1)
    channel = connection.channel()
    for _ in range(20):
        with pytest.raises(socket.timeout):
            connection.drain_events(timeout=0.2)
        connection.send_heartbeat()
    assert channel.queue_declare(exclusive=True).queue


def test_every_kind_of_header_arrives_as_it_was_sent(channel):
    queue = declare(channel)
    sent = {"text": "grüße", "true": True, "small": 7, "large": 2**40, "float": 1.5, "none": None}
    sent |= {"list": [1, "two", 3.5, None, {"four": 4}], "table": {"in": {"in": "deep"}}}
    publish(channel, queue, "", application_headers=sent)
    assert channel.basic_get(queue).headers == sent


@pytest.mark.parametrize("length", [0, 1, 4088, 4089, 1_000_000])
def test_a_body_of_many_frames(connect, length):
    channel = connect(frame_max=4096).channel()
    queue = declare(channel)
    body = bytes(length)
    publish(channel, queue, body)
    message = channel.basic_get(queue)
    assert (message.body if length else b"") == body
