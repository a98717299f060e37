"""Durations: one grammar, that of the command line, wherever a duration is an argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from overtake import AsyncClient, AsyncLease, Client, Consumer, Handling, Lease, Message
from overtake.durations import milliseconds, seconds, settings, whole_seconds
from overtake.message import encoded
from overtake.streams import AsyncSubscriber, Retry, StreamHandling, Subscriber

from .broker import Guest


@pytest.mark.parametrize(
    ("said", "ms"),
    [
        ("250ms", 250),
        ("30s", 30_000),
        ("5m", 300_000),
        ("1h30m", 5_400_000),
        ("1h 30m", 5_400_000),
        ("7d", 604_800_000),
        ("1s500ms", 1_500),
        ("0", 0),
        (" 2s ", 2_000),
        (timedelta(minutes=1, milliseconds=5), 60_005),
    ],
)
def test_a_duration_is_read_as_the_command_line_does(said: str | timedelta, ms: int) -> None:
    assert milliseconds(said, "a") == ms
    assert seconds(said, "a") == ms / 1000


def test_a_number_keeps_the_unit_of_its_argument() -> None:
    assert (seconds(1.5, "timeout"), milliseconds(1500, "ttl_ms")) == (1.5, 1500)
    assert seconds(None, "timeout") is milliseconds(None, "ttl_ms") is None


@pytest.mark.parametrize("said", ["60", " 60 "])
def test_text_without_a_unit_is_refused_and_both_readings_are_shown(said: str) -> None:
    for read in (seconds, milliseconds):
        with pytest.raises(
            ValueError, match=r"`timeout`: .*60.* has no unit: say 60s for seconds, or 60ms for milliseconds"
        ):
            read(said, "timeout")


@pytest.mark.parametrize("said", ["", "s", "1.5s", "-1s", "5min", "1m1h", "1s1s", "1s x", "soon", "1msx"])
def test_what_is_no_duration_is_refused_with_what_is_one(said: str) -> None:
    with pytest.raises(ValueError, match="is no duration: say it as in 250ms, 30s, 5m, 1h30m, 7d"):
        seconds(said, "timeout")


def test_what_is_of_another_type_is_refused() -> None:
    for wrong in (True, b"5s", [5]):
        with pytest.raises(TypeError, match="`timeout` is a number"):
            seconds(wrong, "timeout")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not negative"):
        seconds(timedelta(seconds=-1), "timeout")
    assert whole_seconds("1m", "heartbeat") == 60
    with pytest.raises(ValueError, match="`heartbeat` is in whole seconds, not '1500ms'"):
        whole_seconds("1500ms", "heartbeat")


#: All functions that take durations.
TAKES: list[Callable[..., Any]] = [
    Client,
    Client.publish,
    Client.lease,
    Client.request,
    AsyncClient,
    AsyncClient.publish,
    AsyncClient.lease,
    AsyncClient.request,
    Consumer.next,
    Consumer.wait_until_consuming,
    Handling.wait,
    Lease.nack,
    Lease.extend,
    AsyncLease.nack,
    AsyncLease.extend,
    Message,
    Retry,
    Subscriber,
    Subscriber.next,
    AsyncSubscriber,
    StreamHandling.wait,
]


@pytest.mark.parametrize("takes", TAKES, ids=lambda takes: takes.__qualname__)
def test_every_argument_that_is_a_duration_takes_all_of_them(takes: Callable[..., Any]) -> None:
    found = {
        name: str(parameter.annotation)
        for name, parameter in inspect.signature(takes).parameters.items()
        if name.endswith(("_ms", "_s", "timeout")) or name in ("heartbeat", "login_retry")
    }
    assert found, "it has some"
    assert all(annotation in ("Duration", "Duration | None") for annotation in found.values()), found


def test_a_message_may_say_its_times_with_units() -> None:
    _, properties = encoded(Message(b"", ttl_ms="5m", delay_ms=timedelta(seconds=1)))
    assert properties["expiration"] == "300000"
    assert properties["headers"]["x-delay"] == 1000


def test_settings_may_say_their_times_with_units() -> None:
    said = settings(
        {"visibility_timeout_ms": "1m", "backoff": {"initial_ms": "250ms"}, "scheme": "signed", "max_active": 5}
    )
    assert said == {
        "visibility_timeout_ms": 60_000,
        "backoff": {"initial_ms": 250},
        "scheme": "signed",
        "max_active": 5,
    }
    with pytest.raises(ValueError, match="`initial_ms`: '60' has no unit"):
        settings({"backoff": {"initial_ms": "60"}})


def test_retries_of_streams_may_say_their_waits_with_units() -> None:
    retry = Retry(initial_s="250ms", max_s=timedelta(seconds=1))
    assert [retry.wait_after(attempts) for attempts in (1, 2, 3, 4)] == [0.25, 0.5, 1, 1]
    with pytest.raises(ValueError, match="`initial_s`: '60' has no unit"):
        Retry(initial_s="60")


def test_a_client_takes_durations_everywhere(amqp: str, http: str, guest: Guest, name: str) -> None:
    with Client(
        amqp, http=http, timeout="30s", connect_timeout=timedelta(seconds=10), heartbeat="1m", login_retry="1s"
    ) as client:
        client.declare_queue(name, visibility_timeout_ms="1m")
        assert guest.ask("GET", f"/v1/queues/{name}")["settings"]["visibility_timeout_ms"] == 60_000
        client.publish(name, b"1", ttl_ms="5m")
        [lease] = client.lease(name, wait_ms="1s", lease_ms="1m")
        assert lease.lease_ms == 60_000
        lease.extend("2m")
        lease.nack("0ms")
        with pytest.raises(TimeoutError):
            client.request(name, b"", timeout="10ms")
        client.delete_queue(name)


async def test_an_asyncio_client_takes_durations_everywhere(amqp: str, http: str, name: str) -> None:
    async with AsyncClient(
        amqp, http=http, timeout="30s", connect_timeout=timedelta(seconds=10), heartbeat="1m", login_retry=None
    ) as client:
        await client.declare_queue(name, visibility_timeout_ms=timedelta(minutes=1))
        await client.publish(name, b"1", ttl_ms="5m")
        [lease] = await client.lease(name, wait_ms="1s", lease_ms="1m")
        await lease.extend("2m")
        await lease.nack("0ms")
        with pytest.raises(TimeoutError):
            await client.request(name, b"", timeout="10ms")
        await client.delete_queue(name)


def test_text_without_a_unit_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(ValueError, match="`timeout`: '60' has no unit"):
        Client("amqp://127.0.0.1:1", timeout="60")
    with pytest.raises(ValueError, match="`timeout`: '60' has no unit"):
        AsyncClient("amqp://127.0.0.1:1", timeout="60")
    with pytest.raises(ValueError, match="`block_s`: '60' has no unit"):
        Subscriber("redis://127.0.0.1:1", "customer", "mails", block_s="60")
