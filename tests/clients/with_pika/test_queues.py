"""What a queue is, whose it is, and when it goes."""

import pytest
from pika.exceptions import ChannelClosedByBroker
from words import Inbox, channel_closes, declare, depth_becomes, get, publish, round_trip, take


def exists(connection, queue):
    """Asked on a channel of its own, which the answer may cost."""
    try:
        connection.channel().queue_declare(queue, passive=True)
    except ChannelClosedByBroker as closed:
        assert closed.reply_code == 404, closed
        return False
    return True


def test_the_server_gives_names_and_remembers_the_last(channel):
    queue = channel.queue_declare("", exclusive=True).method.queue
    assert queue.startswith("amq.gen-")
    channel.queue_bind("", "amq.direct", "key-of-" + queue)
    publish(channel, "key-of-" + queue, b"1", exchange="amq.direct")
    assert channel.basic_get("", auto_ack=True)[2] == b"1"
    assert channel.queue_purge("").method.message_count == 0


def test_a_declare_says_how_many_wait_and_how_many_listen(channel, connection):
    queue = declare(channel)
    publish(channel, queue, b"a", b"b", b"c")
    depth_becomes(channel, queue, 3)
    Inbox(connection.channel(), queue).wait(3)
    said = channel.queue_declare(queue, passive=True).method
    assert (said.message_count, said.consumer_count) == (0, 1)


def test_a_queue_that_is_not_there(connection, name):
    text = f"no queue '{name}' in vhost '/'"
    with channel_closes(404, text):
        connection.channel().queue_declare(name, passive=True)
    with channel_closes(404, text):
        connection.channel().basic_get(name)
    with channel_closes(404, text):
        connection.channel().basic_consume(name, print)
    with channel_closes(404, text):
        connection.channel().queue_bind(name, "amq.direct", "key")
    with channel_closes(404, text):
        connection.channel().queue_purge(name)


def test_to_delete_what_is_not_there_is_no_error(channel, name):
    assert channel.queue_delete(name).method.message_count == 0


@pytest.mark.parametrize(
    ("setting", "differs"),
    [
        ({"durable": True}, "durable"),
        ({"auto_delete": True}, "auto_delete"),
        ({"arguments": {"x-message-ttl": 1000}}, "x-message-ttl"),
        ({"arguments": {"x-max-length": 5}}, "x-max-length"),
        ({"arguments": {"x-dead-letter-exchange": "other"}}, "x-dead-letter-exchange"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_declared_again_it_must_be_the_same(channel, connection, name, setting, differs):
    arguments = {"x-dead-letter-exchange": "dlx"} if differs.startswith("x-dead") else {}
    channel.queue_declare(name, arguments=arguments)
    with channel_closes(406, f"inequivalent arg '{differs}' for queue '{name}' in vhost '/'"):
        channel.queue_declare(name, **setting)
    again = connection.channel()
    again.queue_declare(name, arguments=arguments)
    again.queue_delete(name)


def test_an_exclusive_queue_is_never_durable_so_that_makes_no_difference(channel, name):
    channel.queue_declare(name, exclusive=True, durable=True)
    channel.queue_declare(name, exclusive=True)


@pytest.mark.parametrize(
    "arguments",
    [
        {"x-message-ttl": -1},
        {"x-message-ttl": "soon"},
        {"x-expires": 0},
        {"x-max-length": -1},
        {"x-max-priority": -1},
        {"x-max-priority": 256},
        {"x-overflow": "explode"},
        {"x-dead-letter-routing-key": "key-without-exchange"},
        {"x-queue-type": "imaginary"},
        {"x-single-active-consumer": "yes"},
    ],
    ids=repr,
)
def test_arguments_that_make_no_sense_cost_the_channel(channel, name, arguments):
    with channel_closes(406, "PRECONDITION_FAILED"):
        channel.queue_declare(name, arguments=arguments)


def test_arguments_that_mean_nothing_are_let_through(channel):
    declare(channel, x_my_own_note="hello")


def test_an_exclusive_queue_is_nobody_elses(channel, other_connection):
    queue = declare(channel)
    text = f"cannot obtain exclusive access to locked queue '{queue}' in vhost '/'"
    for attempt in (
        lambda other: other.queue_declare(queue, passive=True),
        lambda other: other.basic_get(queue),
        lambda other: other.basic_consume(queue, print),
        lambda other: other.queue_bind(queue, "amq.direct", "key"),
        lambda other: other.queue_purge(queue),
        lambda other: other.queue_delete(queue),
    ):
        with channel_closes(405, text):
            attempt(other_connection.channel())


def test_an_exclusive_queue_can_be_published_to_by_anyone(channel, other_channel):
    queue = declare(channel)
    other_channel.confirm_delivery()
    publish(other_channel, queue, b"1")
    assert get(channel, queue).body == b"1"


def test_an_exclusive_queue_goes_with_its_connection(connect, connection, name):
    owner = connect()
    owner.channel().queue_declare(name, exclusive=True)
    owner.close()
    assert not exists(connection, name)


def test_an_auto_delete_queue_goes_with_its_last_consumer(connection, channel, name):
    channel.queue_declare(name, auto_delete=True)
    assert exists(connection, name), "it never had a consumer"
    one, two = Inbox(channel, name), Inbox(channel, name)
    channel.basic_cancel(one.tag)
    assert exists(connection, name)
    channel.basic_cancel(two.tag)
    assert not exists(connection, name)


def test_purge_takes_what_waits_and_says_how_many(channel):
    queue = declare(channel)
    publish(channel, queue, b"a", b"b", b"c")
    lent = get(channel, queue)
    assert channel.queue_purge(queue).method.message_count == 2
    channel.basic_nack(lent.method.delivery_tag)
    depth_becomes(channel, queue, 1)


def test_delete_asks_first_if_told_to(connection, channel, name):
    channel.queue_declare(name)
    publish(channel, name, b"a")
    with channel_closes(406, "not empty"):
        connection.channel().queue_delete(name, if_empty=True)
    inbox = Inbox(channel, name).wait(1)
    with channel_closes(406, "in use"):
        connection.channel().queue_delete(name, if_unused=True)
    channel.basic_nack(inbox[0].method.delivery_tag)
    channel.basic_cancel(inbox.tag)
    connection.channel().queue_delete(name, if_unused=True)
    assert not exists(connection, name)


def test_a_deleted_queue_takes_its_bindings_along(channel, name):
    returned = []
    channel.add_on_return_callback(lambda *back: returned.append(back))
    for turn in (1, 2):
        channel.queue_declare(name, exclusive=True)
        channel.basic_publish("amq.topic", name, b"", mandatory=True)
        round_trip(channel)
        assert len(returned) == turn
        channel.queue_bind(name, "amq.topic", name)
        channel.queue_delete(name)


def test_names_of_the_broker_are_refused(channel):
    with channel_closes(403, "amq."):
        channel.queue_declare("amq.mine")


def test_the_channel_is_lost_and_the_connection_lives(connection, channel, name):
    with channel_closes(404):
        channel.queue_declare(name, passive=True)
    assert connection.is_open
    again = connection.channel()
    queue = declare(again)
    publish(again, queue, b"1")
    assert take(again, queue, 1)[0].body == b"1"
