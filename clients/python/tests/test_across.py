"""The priority travels between the languages: what one library publishes the other hands on, and dead letters come back.

The program `hop` is there in both: it hands on what comes, and says nothing about the priority. OVERTAKE_HOP is the one in Rust.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from overtake import AsyncClient, Client

from .broker import Guest
from .test_journey import PRIORITIES, hops

__all__ = ["hops"]

HERE = Path(__file__).parents[1]
PROGRAMS = {"Rust": [os.environ.get("OVERTAKE_HOP", "hop")], "Python": [sys.executable, "-m", "recipes.hop"]}


@contextlib.contextmanager
def hop(language: str, amqp: str, source: str, target: str) -> Iterator[None]:
    """The program, until it has handed on what it has in hand."""
    command = [*PROGRAMS[language], amqp, source, target]
    with subprocess.Popen(command, cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == "ready\n"
            yield
            assert running.stdin is not None
            running.stdin.close()
            assert running.wait(60) == 0
        finally:
            running.kill()


@pytest.mark.parametrize("languages", [("Python", "Rust", "Python"), ("Rust", "Python", "Rust")], ids="-".join)
def test_three_hops_through_both_languages(
    client: Client, amqp: str, hops: list[str], languages: tuple[str, ...]
) -> None:
    with contextlib.ExitStack() as programs:
        for language, (source, target) in zip(languages, pairwise(hops), strict=True):
            programs.enter_context(hop(language, amqp, source, target))
        for number, priority in enumerate(PRIORITIES):
            client.publish(hops[0], str(number), priority=priority)
        consumer = client.consume(hops[-1])
        seen = {}
        for _ in PRIORITIES:
            delivery = next(consumer)
            seen[int(delivery.text)] = delivery.priority
            delivery.ack()
        consumer.close()
    assert seen == dict(enumerate(PRIORITIES))


@pytest.mark.parametrize("language", PROGRAMS)
async def test_a_retry_a_dead_letter_and_its_replay_reach_the_other_language(
    aclient: AsyncClient, guest: Guest, amqp: str, hops: list[str], language: str
) -> None:
    source, target = hops[:2]
    for number, priority in enumerate(PRIORITIES):
        await aclient.publish(source, str(number), priority=priority)

    async with aclient.consume(source) as consumer:
        rejected = 0
        while rejected < len(PRIORITIES):
            delivery = await anext(consumer)
            if delivery.count == 1:
                await delivery.nack()
            else:
                await delivery.reject()
                rejected += 1
    assert guest.ask("POST", f"/v1/queues/{source}/replay", {"all": True}) == {"count": len(PRIORITIES)}
    seen = {}
    with hop(language, amqp, source, target):
        async with aclient.consume(target) as consumer:
            for _ in PRIORITIES:
                delivery = await anext(consumer)
                seen[int(delivery.text)] = delivery.priority
                await delivery.ack()
    assert seen == dict(enumerate(PRIORITIES))
