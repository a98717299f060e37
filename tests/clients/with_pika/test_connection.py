"""The connection itself: who may have one, how much fits through, and how it stays alive."""

import datetime
import decimal

import pika
import pytest
from pika.exceptions import ConnectionClosedByBroker, ProbableAccessDeniedError, ProbableAuthenticationError
from words import Inbox, channel_closes, declare, get, publish, round_trip, take


def test_the_broker_says_what_it_can(connection):
    properties = connection._impl.server_properties
    assert properties["product"] and properties["version"]
    wanted = {
        "publisher_confirms",
        "exchange_exchange_bindings",
        "basic.nack",
        "consumer_cancel_notify",
        "connection.blocked",
        "consumer_priorities",
        "authentication_failure_close",
        "per_consumer_qos",
        "direct_reply_to",
    }
    assert wanted <= {name for name, has in properties["capabilities"].items() if has}


def test_a_wrong_password_is_refused_with_a_reason(connect):
    with pytest.raises(ProbableAuthenticationError) as refused:
        connect(credentials=pika.PlainCredentials("guest", "wrong"))
    assert "ACCESS_REFUSED" in str(refused.value)


def test_a_virtual_host_that_is_not_there(connect):
    with pytest.raises((ProbableAccessDeniedError, ConnectionClosedByBroker)) as refused:
        connect(virtual_host="nowhere")
    assert "nowhere" in str(refused.value)


@pytest.mark.parametrize("length", [0, 1, 4087, 4088, 4089, 131_072, 1_000_000])
def test_a_body_of_many_frames_arrives_whole(connect, length):
    channel = connect(frame_max=4096).channel()
    queue = declare(channel)
    body = bytes(turn % 251 for turn in range(length))
    publish(channel, queue, body, b"next")
    assert [one.body for one in take(channel, queue, 2)] == [body, b"next"]


def test_ten_megabytes(channel):
    queue = declare(channel)
    channel.confirm_delivery()
    body = b"overtake!" * (10 * 1024 * 1024 // 9)
    publish(channel, queue, body)
    assert take(channel, queue, 1)[0].body == body


def test_many_channels_at_once(connection):
    channels = [connection.channel() for _ in range(200)]
    queue = declare(channels[0])
    for number, channel in enumerate(channels):
        publish(channel, queue, b"%d" % number)
        round_trip(channel)
    assert len(take(channels[-1], queue, 200)) == 200
    for channel in channels[1::2]:
        channel.close()
    again = [connection.channel() for _ in range(100)]
    assert all(channel.is_open for channel in again)


def test_a_channel_number_above_what_was_agreed(connect):
    connection = connect(channel_max=7)
    assert connection._impl.params.channel_max == 7
    for _ in range(7):
        connection.channel()


def test_every_property_arrives_as_it_was_sent(channel):
    queue = declare(channel)
    sent = pika.BasicProperties(
        content_type="text/plain",
        content_encoding="utf-8",
        headers={"a": 1},
        delivery_mode=2,
        priority=7,
        correlation_id="c-1",
        reply_to="somewhere",
        expiration="600000",
        message_id="m-1",
        timestamp=1_700_000_000,
        type="greeting",
        user_id="guest",
        app_id="clients",
        cluster_id="c",
    )
    channel.basic_publish("", queue, b"", sent)
    assert get(channel, queue).properties == sent


def test_somebody_elses_name_is_refused(channel):
    with channel_closes(406, "user_id property set to 'somebody' but authenticated user was 'guest'"):
        publish(channel, "nowhere", b"", user_id="somebody")
        round_trip(channel)


def test_every_kind_of_header_arrives_as_it_was_sent(channel):
    queue = declare(channel)
    sent = {
        "text": "grüße",
        "bytes": b"\x00\xff",
        "true": True,
        "small": 7,
        "negative": -7,
        "large": 2**40,
        "nothing": None,
        "time": datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC),
        "decimal": decimal.Decimal("3.14"),
        "list": [1, "two", [3, None], {"four": 4}],
        "table": {"in": {"in": {"in": "deep"}}},
    }
    publish(channel, queue, b"", headers=sent)
    got = get(channel, queue).properties.headers
    assert {**got, "bytes": bytes(got["bytes"])} == sent


def test_idle_with_heartbeats_it_lives(connect):
    connection = connect(heartbeat=1)
    assert connection._impl.params.heartbeat == 1
    channel = connection.channel()
    # Three heartbeats' time, in which nothing is said but heartbeats.
    connection.process_data_events(time_limit=3.5)
    queue = declare(channel)
    publish(channel, queue, b"alive")
    assert get(channel, queue).body == b"alive"


def test_a_new_secret_is_taken(connection):
    connection.update_secret("guest", "the old one was about to expire")
    assert connection.channel().is_open


def test_an_empty_body_between_full_ones(channel):
    queue = declare(channel)
    publish(channel, queue, b"a", b"", b"b")
    assert Inbox(channel, queue).wait(3).bodies() == [b"a", b"", b"b"]
