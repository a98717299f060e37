"""A category for those who write into it and who see to it, with a Redis of each test's own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from overtake import Priority, Refused, current_priority, processing_priority
from overtake.streams import AsyncCategory, Category, Entry, Lag, Lane, Lanes, Subscriber

from .redis_server import RedisServer
from .test_streams import drain, subscribe, take


def category(server: RedisServer, **more: Any) -> Category:
    return Category(server.url, "customer", lanes=Lanes(), **more)


def test_an_entry_goes_to_the_lane_of_its_priority_which_its_handler_inherits(redis_server: RedisServer) -> None:
    with category(redis_server) as customer:
        customer.publish("said", priority=Priority.CRITICAL)
        with processing_priority(Priority.LOW):
            customer.publish("late", metadata={"trace": "t", "domain": {"priority": 7}})
            customer.publish("now", priority=Priority.NORMAL, id="m-1", type="Moved")
    seen: list[tuple[Any, int, str]] = []

    def handler(entry: Entry) -> None:
        seen.append((entry.data, current_priority(), entry.stream))
        if len(seen) == 3:
            handling.stop()

    handling = subscribe(redis_server).handle(handler)
    handling.wait()
    assert seen == [("said", 100, "customer"), ("now", 0, "customer"), ("late", -50, "customer:backfill")]
    (_, fields), *_ = redis_server.ask("XRANGE", "customer:backfill", "-", "+")
    assert json.loads(fields[1])["metadata"]["trace"] == "t"
    (_, fields) = redis_server.ask("XRANGE", "customer", "-", "+")[1]
    assert json.loads(fields[1])["metadata"]["headers"] == {"id": "m-1", "type": "Moved"}


def test_an_entry_with_a_key_goes_to_the_streams_of_that_key(redis_server: RedisServer) -> None:
    with category(redis_server, partitions=True) as customer:
        customer.publish("1", key="7")
        customer.publish("2", key="7", priority=Priority.BULK)
        for key in ("", "a:b", "dlq", "backfill", "__x__", "k" * 256):
            with pytest.raises(ValueError, match="the partition key"):
                customer.publish("3", key=key)
    assert redis_server.ask("SMEMBERS", "customer:__partitions__") == [b"7"]
    with Subscriber(redis_server.url, "customer", "mails", lanes=Lanes(), partitions=True) as subscriber:
        assert drain(subscriber, 2) == ["1", "2"]


def test_how_far_each_group_is_is_told_for_each_lane_of_all_partitions(redis_server: RedisServer) -> None:
    redis_server.add("customer", "1", "2", "3")
    redis_server.ask("SADD", "customer:__partitions__", "7")
    redis_server.add("customer:7:backfill", "late")
    redis_server.ask("XADD", "customer:7:dlq", "*", "data", '{"data": 1}')
    with category(redis_server) as customer:
        assert customer.groups() == []
        assert customer.lag("mails") == [Lag(Lane.PRIMARY, waiting=3, dead=1), Lag(Lane.BACKFILL, waiting=1)]
        with subscribe(redis_server, batch=1) as subscriber:
            old = redis_server.ask("XADD", "customer:backfill", "1000-0", "data", '{"data": 1}')
            take(subscriber)
            primary, backfill = customer.lag("mails")
            assert (primary.waiting, primary.pending, primary.dead) == (2, 1, 1)
            assert backfill.waiting == 2
            assert backfill.oldest_s > 1_000_000_000, old
            assert customer.groups() == ["mails"]
            # A gap before a group's place makes its own number unknown.
            redis_server.ask("XDEL", "customer", redis_server.ask("XRANGE", "customer", "-", "+")[2][0])
            assert customer.lag("mails")[0].waiting == 1


def test_only_what_every_group_has_settled_is_deleted(redis_server: RedisServer) -> None:
    redis_server.add("customer", "1", "2", "3", "4")
    with category(redis_server) as customer, subscribe(redis_server) as subscriber:
        assert customer.trim() == 0
        entries = [take(subscriber) for _ in range(4)]
        for at in (0, 1, 3):
            assert subscriber.ack(entries[at])
        # The third is pending, and what is behind it stays with it.
        assert customer.trim() == 2
        assert subscriber.ack(entries[2])
        # A group that has read nothing keeps everything, also one that is in another stream only.
        redis_server.ask("XGROUP", "CREATE", "customer:backfill", "bills", "0", "MKSTREAM")
        assert customer.trim() == 0
        redis_server.ask("XGROUP", "CREATE", "customer", "bills", "$")
        assert customer.trim() == 2


async def test_the_same_is_there_with_asyncio(redis_server: RedisServer) -> None:
    async with AsyncCategory(redis_server.url, "customer", lanes=Lanes()) as customer:
        await customer.publish("late", priority=Priority.LOW)
        assert [lag.waiting for lag in await customer.lag("mails")] == [0, 1]
        assert await customer.groups() == []
        assert await customer.trim() == 0


def test_what_the_server_declines_is_told(redis_server: RedisServer) -> None:
    redis_server.ask("SET", "customer", "text")
    with category(redis_server) as customer, pytest.raises(Refused, match="WRONGTYPE"):
        customer.publish("1")


def test_a_stream_that_cannot_be_read_is_named_and_the_others_are_trimmed(redis_server: RedisServer) -> None:
    redis_server.ask("SADD", "customer:__partitions__", "7", "8")
    redis_server.ask("SET", "customer:7", "text")
    redis_server.ask("XADD", "customer:8", "*", "data", "{}")
    redis_server.ask("XGROUP", "CREATE", "customer:8", "mails", "$")
    with category(redis_server) as customer:
        for ask in (customer.groups, lambda: customer.lag("mails"), customer.trim):
            with pytest.raises(Refused, match=r"^customer:7: WRONGTYPE") as refused:
                ask()
            assert refused.value.code == "WRONGTYPE"
        assert redis_server.ask("XLEN", "customer:8") == 0
        redis_server.ask("DEL", "customer:7")
        redis_server.ask("SET", "customer:8:dlq", "text")
        with pytest.raises(Refused, match=r"^customer:8:dlq: WRONGTYPE"):
            customer.lag("mails")
