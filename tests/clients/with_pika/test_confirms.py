"""A publisher is told: taken, refused, or nobody wants it. And a transaction is all or nothing."""

import pika
import pytest
from pika.exceptions import NackError, UnroutableError
from words import channel_closes, connection_closes, declare, depth_becomes, get, get_all, publish, round_trip


@pytest.fixture
def queue(channel):
    return declare(channel)


def test_a_confirmed_message_is_there(channel, queue):
    channel.confirm_delivery()
    publish(channel, queue, b"a", delivery_mode=2)
    depth_becomes(channel, queue, 1)


def test_what_nobody_wants_is_confirmed_too(channel, name):
    channel.confirm_delivery()
    publish(channel, name, b"a")


def test_mandatory_and_nobody_wants_it(channel, name):
    channel.confirm_delivery()
    with pytest.raises(UnroutableError) as unroutable:
        properties = pika.BasicProperties(message_id="m-1", headers={"a": 1})
        channel.basic_publish("", name, b"body", properties, mandatory=True)
    [back] = unroutable.value.messages
    assert (back.method.reply_code, back.method.reply_text) == (312, "NO_ROUTE")
    assert (back.method.exchange, back.method.routing_key) == ("", name)
    assert (back.body, back.properties.message_id, back.properties.headers) == (b"body", "m-1", {"a": 1})


def test_mandatory_without_confirms(channel, name):
    returned = []
    channel.add_on_return_callback(lambda channel, *back: returned.append(back))
    channel.basic_publish("", name, b"body", mandatory=True)
    round_trip(channel)
    [(method, _, body)] = returned
    assert (method.reply_code, body) == (312, b"body")


def test_a_full_queue_that_refuses_says_no(channel):
    queue = declare(channel, x_max_length=1, x_overflow="reject-publish")
    channel.confirm_delivery()
    publish(channel, queue, b"a")
    with pytest.raises(NackError):
        publish(channel, queue, b"b")
    assert get_all(channel, queue) == [b"a"]
    publish(channel, queue, b"c")


def test_immediate_is_refused(connection):
    channel = connection.channel()
    with connection_closes(540, "immediate"):
        method = pika.spec.Basic.Publish(routing_key="q", immediate=True)
        channel._impl._send_method(method, (pika.BasicProperties(), b""))
        round_trip(channel)


def test_a_transaction_is_seen_when_it_is_committed(channel, other_channel, name):
    other_channel.queue_declare(name, auto_delete=True)
    channel.tx_select()
    publish(channel, name, b"a", b"b")
    depth_becomes(other_channel, name, 0)
    channel.tx_commit()
    depth_becomes(other_channel, name, 2)
    other_channel.queue_delete(name)


def test_what_is_rolled_back_was_never_published(channel, queue):
    channel.tx_select()
    publish(channel, queue, b"a")
    channel.tx_rollback()
    publish(channel, queue, b"b")
    channel.tx_commit()
    assert get_all(channel, queue) == [b"b"]


def test_an_ack_belongs_to_the_transaction(connection, channel, queue):
    publish(channel, queue, b"a", b"b")
    worker = connection.channel()
    worker.tx_select()
    worker.basic_ack(get(worker, queue).method.delivery_tag)
    worker.tx_commit()
    worker.basic_ack(get(worker, queue).method.delivery_tag)
    worker.tx_rollback()
    worker.close()
    assert get_all(channel, queue) == [b"b"]


def test_urgent_overtakes_within_a_transaction(channel):
    queue = declare(channel, x_max_priority=9)
    channel.tx_select()
    publish(channel, queue, b"bulk", priority=0)
    publish(channel, queue, b"urgent", priority=9)
    channel.tx_commit()
    assert get_all(channel, queue)[:1] == [b"urgent"]


def test_a_commit_without_a_transaction_costs_the_channel(channel):
    with channel_closes(406, "not transactional"):
        channel.tx_commit()


def test_confirms_and_transactions_exclude_each_other(channel, other_channel):
    channel.tx_select()
    with channel_closes(406, "tx to confirm"):
        channel.confirm_delivery()
    other_channel.confirm_delivery()
    with channel_closes(406, "confirm to tx"):
        other_channel.tx_select()
