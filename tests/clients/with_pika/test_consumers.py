"""Who gets what, and who is told when it is over."""

import pika
import pytest
from words import (
    GUARD_S,
    Inbox,
    channel_closes,
    connection_closes,
    declare,
    depth_becomes,
    get,
    publish,
    round_trip,
    take,
    wait_until,
)


@pytest.fixture
def queue(channel):
    return declare(channel)


def test_get_says_how_many_are_left(channel, queue):
    assert channel.basic_get(queue) == (None, None, None)
    publish(channel, queue, b"a", b"b", exchange="")
    first = get(channel, queue).method
    assert (first.message_count, first.exchange, first.routing_key) == (1, "", queue)
    assert get(channel, queue).method.message_count == 0


def test_a_delivery_says_where_it_came_from(channel, queue):
    channel.queue_bind(queue, "amq.topic", "a.#")
    publish(channel, "a.b", b"1", exchange="amq.topic")
    inbox = Inbox(channel, queue, consumer_tag="my tag").wait(1)
    method = inbox[0].method
    assert (method.consumer_tag, method.exchange, method.routing_key) == ("my tag", "amq.topic", "a.b")
    assert (method.redelivered, method.delivery_tag) == (False, 1)


def test_a_consumer_is_told_that_its_queue_is_gone(connection, channel, queue):
    told = []
    channel.add_on_cancel_callback(lambda frame: told.append(frame.method.consumer_tag))
    inbox = Inbox(channel, queue)
    connection.channel().queue_delete(queue)
    wait_until(connection, lambda: told)
    assert told == [inbox.tag]
    assert channel.is_open


def test_a_tag_is_used_once_in_a_channel(connection, channel, queue):
    channel.basic_consume(queue, print, consumer_tag="mine")
    with connection_closes(530, "attempt to reuse consumer tag 'mine'"):
        # pika would notice by itself.
        channel._impl._consumers.clear()
        channel._consumer_infos.clear()
        channel.basic_consume(queue, print, consumer_tag="mine")


def test_an_exclusive_consumer_is_alone(connection, channel, queue):
    channel.basic_consume(queue, print, exclusive=True)
    with channel_closes(403, "in exclusive use"):
        connection.channel().basic_consume(queue, print)


def test_nobody_becomes_exclusive_beside_others(connection, channel, queue):
    channel.basic_consume(queue, print)
    with channel_closes(403, "exclusive"):
        connection.channel().basic_consume(queue, print, exclusive=True)


def test_consumers_take_turns(connection, channel, queue):
    inboxes = [Inbox(connection.channel(), queue) for _ in range(3)]
    publish(channel, queue, *(b"%d" % turn for turn in range(9)))
    wait_until(connection, lambda: sum(map(len, inboxes)) == 9)
    assert [len(inbox) for inbox in inboxes] == [3, 3, 3]


def test_a_consumer_of_higher_priority_is_served_first(connection, channel, queue):
    common, better = connection.channel(), connection.channel()
    for one in (common, better):
        one.basic_qos(prefetch_count=2)
    common = Inbox(common, queue)
    better = Inbox(better, queue, arguments={"x-priority": 10})
    publish(channel, queue, *(b"%d" % turn for turn in range(3)))
    wait_until(connection, lambda: len(common) + len(better) == 3)
    assert (better.bodies(), common.bodies()) == ([b"0", b"1"], [b"2"])


def test_of_single_active_consumers_the_next_one_takes_over(connection, channel):
    queue = declare(channel, x_single_active_consumer=True)
    first, second = (Inbox(connection.channel(), queue) for _ in range(2))
    publish(channel, queue, b"a", b"b")
    first.wait(2)
    first.channel.basic_ack(first[1].method.delivery_tag, multiple=True)
    first.channel.basic_cancel(first.tag)
    publish(channel, queue, b"c")
    assert (first.bodies(), second.wait(1).bodies()) == ([b"a", b"b"], [b"c"])


def test_single_active_consumers_lose_nothing_when_one_is_lost(connect, connection, channel, name):
    channel.queue_declare(name, arguments={"x-single-active-consumer": True})
    lost = connect()
    Inbox(lost.channel(), name)
    second = Inbox(connection.channel(), name)
    channel.confirm_delivery()
    publish(channel, name, b"a")
    lost.process_data_events(time_limit=0)
    lost.close()
    assert second.wait(1).bodies() == [b"a"]
    channel.queue_delete(name)


def test_an_answer_comes_directly(connection, other_connection, other_channel):
    """RPC over `amq.rabbitmq.reply-to`: no queue is declared for the answers."""
    requests = declare(other_channel)

    def double(channel, method, properties, body):
        answer = pika.BasicProperties(correlation_id=properties.correlation_id)
        channel.basic_publish("", properties.reply_to, b"%d" % (2 * int(body)), answer)
        channel.basic_ack(method.delivery_tag)

    other_channel.basic_consume(requests, double)
    client = connection.channel()
    answers = Inbox(client, "amq.rabbitmq.reply-to", auto_ack=True)
    for number in range(10):
        publish(client, requests, b"%d" % number, reply_to="amq.rabbitmq.reply-to", correlation_id=str(number))
    for _ in range(GUARD_S * 10):
        other_connection.process_data_events(time_limit=0.05)
        connection.process_data_events(time_limit=0.05)
        if len(answers) == 10:
            break
    assert answers.bodies() == [b"%d" % (2 * number) for number in range(10)]
    assert [one.properties.correlation_id for one in answers] == [str(number) for number in range(10)]


def test_direct_answers_need_a_consumer_without_acknowledgements(connection, channel, queue):
    with channel_closes(406, "reply consumer"):
        channel.basic_consume("amq.rabbitmq.reply-to", print)
    client = connection.channel()
    with channel_closes(406, "fast reply consumer does not exist"):
        publish(client, queue, b"", reply_to="amq.rabbitmq.reply-to")
        round_trip(client)


def test_an_answer_to_nobody_is_unroutable(channel):
    returned = []
    channel.add_on_return_callback(lambda *back: returned.append(back))
    channel.basic_publish("", "amq.rabbitmq.reply-to.nobody", b"", mandatory=True)
    round_trip(channel)
    assert len(returned) == 1


def test_answers_through_a_queue_of_ones_own(channel):
    """The older way of RPC."""
    requests, answers = declare(channel), declare(channel)
    publish(channel, requests, b"21", reply_to=answers, correlation_id="c-1")
    asked = get(channel, requests)
    publish(channel, asked.properties.reply_to, b"42", correlation_id=asked.properties.correlation_id)
    [answer] = take(channel, answers, 1)
    assert (answer.body, answer.properties.correlation_id) == (b"42", "c-1")


def test_a_cancelled_consumer_gets_nothing_more(channel, queue):
    inbox = Inbox(channel, queue)
    publish(channel, queue, b"a")
    inbox.wait(1)
    channel.basic_cancel(inbox.tag)
    publish(channel, queue, b"b")
    depth_becomes(channel, queue, 1)
    assert inbox.bodies() == [b"a"]


def test_to_cancel_what_is_not_there_is_no_error(channel):
    channel._impl._consumers["ghost"] = print
    channel._impl.basic_cancel("ghost")
    round_trip(channel)
    assert channel.is_open
