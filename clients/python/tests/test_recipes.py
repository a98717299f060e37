"""The recipes run: a Celery worker as people run it, and a FastAPI application."""

from __future__ import annotations

import contextlib
import pathlib
import signal
import subprocess
import sys
from collections.abc import Iterator

import httpx2
import pytest

from overtake import AsyncClient, Client, Priority, processing_priority

GUARD_S = 100
HERE = pathlib.Path(__file__).parents[1]


@contextlib.contextmanager
def worker(name: str, log: pathlib.Path) -> Iterator[None]:
    """A prefork worker with two processes; one SIGTERM ends it, and what is in hand is finished."""
    command = [sys.executable, "-m", "celery", "--app", "recipes.celery_app", "worker"]
    command += ["--hostname", f"{name}@clients", "--concurrency", "2"]
    with log.open("wb") as out:
        running = subprocess.Popen(command, cwd=HERE, stdout=out, stderr=out)
        try:
            yield
            running.send_signal(signal.SIGTERM)
            assert running.wait(GUARD_S) == 0
        finally:
            running.kill()
            running.wait()
            print(log.read_text()[-10_000:])


def test_a_celery_task_and_what_it_calls_run_in_the_scope_of_the_call(
    client: Client, name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mails = f"{name}-mails"
    monkeypatch.setenv("OVERTAKE_QUEUE", name)
    monkeypatch.setenv("OVERTAKE_MAILS", mails)
    for module in [each for each in sys.modules if each.startswith("recipes.celery")]:
        monkeypatch.delitem(sys.modules, module)
    from recipes import celery_app

    client.declare_queue(mails, scheme="signed")
    with celery_app.app.connection_for_write() as connection:
        celery_app.app.amqp.queues[name](connection.default_channel).declare()
    celery_app.backfill(range(2))
    celery_app.update_customer.delay(2)
    celery_app.update_customer.apply_async((3,), priority=7)
    with processing_priority(Priority.CRITICAL):
        celery_app.update_customer.apply_async((4,), priority=0)
        celery_app.update_customer.delay(5)
    seen = set()
    with worker(name, tmp_path / "log"):
        consumer = client.consume(mails)
        for _ in range(6):
            mail = next(consumer)
            mail.ack()
            seen.add((mail.text, mail.priority))
        consumer.close()
    client.delete_queue(name)
    client.delete_queue(mails)
    expected = {0: -50, 1: -50, 2: None, 3: 7, 4: 0, 5: 100}
    assert seen == {(f"{customer} at {priority or 0}", priority) for customer, priority in expected.items()}


async def test_what_a_request_publishes_is_as_urgent_as_the_request(
    aclient: AsyncClient, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERTAKE_QUEUE", name)
    monkeypatch.delitem(sys.modules, "recipes.fastapi_app", raising=False)
    from recipes import fastapi_app

    app = fastapi_app.app
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://shop") as asking,
    ):
        assert (await asking.post("/imports", json=["a", "b"])).json() == 2
        assert (await asking.post("/orders/c")).status_code == 202
        assert (await asking.post("/orders/d", headers={"x-processing-priority": "50"})).status_code == 202
        assert (await asking.post("/orders/e", headers={"x-processing-priority": "high"})).status_code == 422
        # The import says itself how urgent it is.
        assert (await asking.post("/imports", json=["f"], headers={"x-processing-priority": "50"})).json() == 1
    seen = []
    consumer = aclient.consume(name)
    for _ in range(5):
        delivery = await anext(consumer)
        seen.append((delivery.text, delivery.priority))
        await delivery.ack()
    await aclient.delete_queue(name)
    assert seen == [("d", 50), ("c", None), ("a", -100), ("b", -100), ("f", -100)]
