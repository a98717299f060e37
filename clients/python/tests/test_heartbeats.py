"""Heartbeats: they go on while nobody asks for anything, and who hears none connects again. These tests take the time they are about."""

from __future__ import annotations

import asyncio

from overtake import AsyncClient, Client

from .broker import Line
from .rows import row


@row("connect")
def test_a_client_that_has_nothing_to_do_keeps_its_connection_plain(amqp: str, http: str, queue: str) -> None:
    with Line(amqp) as line, Client(line.url, http=http, heartbeat=1) as client:
        assert line.wait_for_heartbeats(4)
        client.publish(queue, b"")
        assert line.connections == 1


@row("connect")
async def test_a_client_that_has_nothing_to_do_keeps_its_connection_asyncio(amqp: str, http: str, queue: str) -> None:
    with Line(amqp) as line:
        async with AsyncClient(line.url, http=http, heartbeat=1) as client:
            assert await asyncio.to_thread(line.wait_for_heartbeats, 4)
            await client.publish(queue, b"")
            assert line.connections == 1


@row("reconnect: topology, consumers, what was not confirmed")
def test_a_broker_that_falls_silent_is_given_up_plain(amqp: str, http: str, queue: str) -> None:
    with Line(amqp) as line, Client(line.url, http=http, heartbeat=1) as client:
        client.publish(queue, b"")
        line.fall_silent()
        client.publish(queue, b"")
        assert line.connections == 2


@row("reconnect: topology, consumers, what was not confirmed")
async def test_a_broker_that_falls_silent_is_given_up_asyncio(amqp: str, http: str, queue: str) -> None:
    with Line(amqp) as line:
        async with AsyncClient(line.url, http=http, heartbeat=1) as client:
            await client.publish(queue, b"")
            line.fall_silent()
            await client.publish(queue, b"")
            assert line.connections == 2
