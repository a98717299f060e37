"""pika without blocking: everything is a callback, and the loop is pika's own."""

import itertools

import pika
import pytest
from pika.adapters.select_connection import SelectConnection
from words import GUARD_S

COUNT = 500


@pytest.fixture
def run(url):
    """Runs a program that begins with an open channel and ends by closing the connection; gives how it ended."""

    def run(begin):
        ended = []

        def closed(connection, reason):
            ended.append(reason)
            connection.ioloop.stop()

        def failed(connection, error):
            closed(connection, error)

        connection = SelectConnection(
            pika.URLParameters(url),
            on_open_callback=lambda connection: connection.channel(on_open_callback=begin),
            on_open_error_callback=failed,
            on_close_callback=closed,
        )
        connection.ioloop.call_later(GUARD_S, connection.ioloop.stop)
        connection.ioloop.start()
        [reason] = ended
        return reason

    return run


class Outstanding(set):
    """Tags of publishes that the broker has not confirmed yet; one confirm may settle all up to its own."""

    def settle(self, ack):
        assert isinstance(ack, pika.spec.Basic.Ack)
        settled = {tag for tag in self if tag == ack.delivery_tag or (ack.multiple and tag < ack.delivery_tag)}
        assert ack.delivery_tag in settled, f"{ack.delivery_tag} is confirmed and was not outstanding"
        self -= settled


def test_every_publish_is_confirmed_once_alone_or_with_those_before(run, name):
    outstanding = Outstanding(range(1, COUNT + 1))

    def begin(channel):
        channel.queue_declare(name, exclusive=True, callback=lambda _: channel.confirm_delivery(confirmed, publish))

        def publish(_):
            for number in range(COUNT):
                channel.basic_publish("", name, b"%d" % number)

        def confirmed(frame):
            outstanding.settle(frame.method)
            if not outstanding:
                channel.connection.close(200, "all confirmed")

    assert run(begin).reply_text == "all confirmed"


def test_urgent_overtakes_while_a_window_of_one_is_worked_off(run, name):
    """Bulk is published; with the first of it in hand, urgent: it comes next, then the rest of the bulk."""
    got = []
    outstanding = Outstanding()

    def begin(channel):
        held, tags = [], itertools.count(1)

        def publish(*bodies, priority):
            for body in bodies:
                outstanding.add(next(tags))
                channel.basic_publish("", name, body, pika.BasicProperties(priority=priority))

        def start(_):
            publish(*(b"bulk %d" % number for number in range(50)), priority=0)

        def confirmed(frame):
            outstanding.settle(frame.method)
            if not outstanding and not got:
                channel.basic_consume(name, work)
            elif not outstanding:
                channel.basic_ack(held.pop())

        def work(_, method, properties, body):
            got.append(body)
            if len(got) == 1:
                held.append(method.delivery_tag)
                publish(b"urgent 1", b"urgent 2", priority=9)
            else:
                channel.basic_ack(method.delivery_tag)
            if len(got) == 52:
                channel.connection.close(200, "done")

        channel.queue_declare(name, exclusive=True, arguments={"x-max-priority": 9})
        channel.basic_qos(prefetch_count=1)
        channel.confirm_delivery(confirmed, callback=start)

    run(begin)
    assert got[:4] == [b"bulk 0", b"urgent 1", b"urgent 2", b"bulk 1"]
    assert got[4:] == [b"bulk %d" % number for number in range(2, 50)]


def test_many_channels_work_side_by_side(run, name):
    """Fifty channels, each with a queue, a publisher and a consumer of its own; all asked for before any answer."""
    done = set()

    def begin(first):
        connection = first.connection
        for number in range(50):
            connection.channel(on_open_callback=lambda channel, number=number: work(channel, number))

        def work(channel, number):
            queue = f"{name}-{number}"
            channel.queue_declare(queue, exclusive=True)
            channel.basic_consume(queue, lambda *delivery: finish(number, *delivery), auto_ack=True)
            channel.basic_publish("", queue, b"%d" % number)

        def finish(number, channel, method, properties, body):
            assert body == b"%d" % number
            done.add(number)
            if len(done) == 50:
                connection.close(200, "done")

    run(begin)
    assert done == set(range(50))


def test_a_broker_that_closes_the_channel_says_why(run, name):
    told = []

    def begin(channel):
        def closed(channel, reason):
            told.append(reason)
            channel.connection.close(200, "done")

        channel.add_on_close_callback(closed)
        channel.queue_declare(name, passive=True)

    run(begin)
    assert told[0].reply_code == 404
    assert told[0].reply_text == f"NOT_FOUND - no queue '{name}' in vhost '/'"
