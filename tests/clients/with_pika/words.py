"""What the programs say again and again."""

import contextlib
from typing import NamedTuple

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker, ConnectionClosedByBroker

#: A delivery that has not come by now will not come: a guard, not a measure.
GUARD_S = 30


class Delivery(NamedTuple):
    method: object
    properties: pika.BasicProperties
    body: bytes


def declare(channel, **arguments):
    """A queue of our own; `x_max_priority=9` is the argument `x-max-priority`."""
    arguments = {key.replace("_", "-"): value for key, value in arguments.items()}
    return channel.queue_declare("", exclusive=True, arguments=arguments).method.queue


def publish(channel, queue, *bodies, exchange="", **properties):
    for body in bodies:
        channel.basic_publish(exchange, queue, body, pika.BasicProperties(**properties))


def get(channel, queue):
    """The next message, which is there already."""
    delivery = Delivery(*channel.basic_get(queue))
    assert delivery.method is not None, f"{queue} is empty"
    return delivery


def get_all(channel, queue):
    """The bodies of everything that is there, acknowledged."""
    bodies = []
    while (delivery := Delivery(*channel.basic_get(queue, auto_ack=True))).method is not None:
        bodies.append(delivery.body)
    return bodies


def take(channel, queue, count):
    """Consumes until `count` have come, and acknowledges each."""
    taken = []
    for method, properties, body in channel.consume(queue, inactivity_timeout=GUARD_S):
        assert method is not None, f"only {len(taken)} of {count} came"
        channel.basic_ack(method.delivery_tag)
        taken.append(Delivery(method, properties, body))
        if len(taken) == count:
            break
    channel.cancel()
    return taken


def bodies(deliveries):
    return [delivery.body for delivery in deliveries]


class Inbox(list):
    """What a consumer was given, in order; its connection must be asked for events."""

    def __init__(self, channel, queue, **settings):
        super().__init__()
        self.channel = channel
        self.tag = channel.basic_consume(queue, lambda _, *delivery: self.append(Delivery(*delivery)), **settings)

    def wait(self, count):
        wait_until(self.channel.connection, lambda: len(self) >= count)
        return self

    def bodies(self):
        return bodies(self)


def wait_until(connection, is_so):
    """Lets the connection work until it is so."""
    for _ in range(GUARD_S * 10):
        if is_so():
            return
        connection.process_data_events(time_limit=0.1)
    pytest.fail("it did not come")


def round_trip(channel):
    """When this returns, the broker has done all that was asked on the channel, and what it pushed has arrived."""
    channel.basic_qos(prefetch_count=0)
    channel.connection.process_data_events(time_limit=0)


def depth(channel, queue):
    """Messages that are ready, by the queue's own word; RabbitMQ answers ahead of publishes that are on their way."""
    return channel.queue_declare(queue, passive=True).method.message_count


def depth_becomes(channel, queue, count):
    wait_until(channel.connection, lambda: depth(channel, queue) == count)


@contextlib.contextmanager
def channel_closes(code, text=""):
    """What is said inside costs the channel, with this code."""
    with pytest.raises(ChannelClosedByBroker) as closed:
        yield
    assert closed.value.reply_code == code, closed.value
    assert text in closed.value.reply_text, closed.value


@contextlib.contextmanager
def connection_closes(code, text=""):
    """What is said inside costs the connection, with this code."""
    with pytest.raises(ConnectionClosedByBroker) as closed:
        yield
    assert closed.value.reply_code == code, closed.value
    assert text in closed.value.reply_text, closed.value
