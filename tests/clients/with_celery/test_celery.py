"""A Celery worker as people run it: prefork, late acknowledgements, a window of one; a thousand tasks, three priorities.

The worker is a process of its own, with everything that is on by default: gossip, mingle, events, remote control.
"""

import collections
import contextlib
import os
import signal
import subprocess
import sys

import pytest

BULK, NORMAL, URGENT = 0, 5, 9
PROCESSES = 2
#: One task at a time, and so one message in hand.
ALONE = ("--pool", "solo", "--concurrency", "1")
GUARD_S = 100


@pytest.fixture
def app(name, tmp_path, monkeypatch):
    monkeypatch.setenv("OVERTAKE_QUEUE", name)
    monkeypatch.setenv("OVERTAKE_JOURNAL", str(tmp_path / "journal"))
    monkeypatch.delitem(sys.modules, "app", raising=False)
    import app

    with app.app.connection() as connection:
        app.app.amqp.queues[name](connection.default_channel).declare()
        yield app
        app.app.amqp.queues[name](connection.default_channel).delete()


@contextlib.contextmanager
def worker(name, tmp_path, *options):
    """Ends as an operator ends it: one SIGTERM, and what is in hand is finished."""
    command = [sys.executable, "-m", "celery", "--app", "app", "worker", "--hostname", f"{name}@clients", *options]
    with open(tmp_path / "worker.log", "wb") as log:
        running = subprocess.Popen(command, cwd=os.path.dirname(__file__), stdout=log, stderr=log)
        try:
            yield running
            running.send_signal(signal.SIGTERM)
            assert running.wait(GUARD_S) == 0
        finally:
            running.kill()
            running.wait()
            print((tmp_path / "worker.log").read_text()[-10_000:])


def journal(app):
    return app.JOURNAL.read_text().split("\n")[:-1]


def test_a_thousand_tasks_in_three_priorities_each_once_and_urgent_first(app, name, tmp_path):
    """All wait before the worker starts; mixed, so that an order by arrival would look different."""
    results = []
    for number in range(1000):
        priority = (BULK, BULK, BULK, NORMAL, BULK, BULK, NORMAL, BULK, URGENT, BULK)[number % 10]
        results.append(app.work.apply_async((priority, number), priority=priority))
    with worker(name, tmp_path, "--concurrency", str(PROCESSES)):
        digests = [result.get(timeout=GUARD_S) for result in results]
    assert len(set(digests)) == 1000
    begun = [tuple(map(int, line.split())) for line in journal(app)]
    assert sorted(number for _, number in begun) == list(range(1000)), "each once"
    assert collections.Counter(priority for priority, _ in begun) == {BULK: 700, NORMAL: 200, URGENT: 100}
    # When the first less urgent task is given out, all that are more urgent have been: what one process has in hand may
    # begin later than what the others do, and no more than that.
    order = [priority for priority, _ in begun]
    for level in (URGENT, NORMAL):
        first_below = next(at for at, priority in enumerate(order) if priority < level)
        assert order[first_below:].count(level) < PROCESSES


def test_urgent_overtakes_bulk_that_waits_behind_a_task_in_hand(app, name, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    held = app.hold.delay(str(gate))
    with worker(name, tmp_path, *ALONE):
        bulk = [app.work.apply_async((BULK, number), priority=BULK) for number in range(50)]
        # Opening it waits for the task that reads: by now the worker has its hands full.
        with open(gate, "wb"):
            urgent = [app.work.apply_async((URGENT, number), priority=URGENT) for number in range(10)]
        for result in [held, *urgent, *bulk]:
            result.get(timeout=GUARD_S)
    order = [*(f"{URGENT} {number}" for number in range(10)), *(f"{BULK} {number}" for number in range(50))]
    assert journal(app) == ["hold", *order]


def test_a_worker_that_is_killed_loses_nothing(app, name, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    held = app.hold.delay(str(gate))
    after = app.work.apply_async((BULK, 1), priority=BULK)
    with contextlib.suppress(AssertionError), worker(name, tmp_path, *ALONE) as killed:
        with open(gate, "wb"):
            killed.kill()
            killed.wait()
    with worker(name, tmp_path, *ALONE):
        with open(gate, "wb"):
            pass
        held.get(timeout=GUARD_S)
        after.get(timeout=GUARD_S)
    assert journal(app) == ["hold", "hold", f"{BULK} 1"]


def test_what_celery_builds_upon_tasks(app, name, tmp_path):
    """Retries, chains, groups, remote control and revoking: all of it is messages."""
    import celery

    with worker(name, tmp_path, "--concurrency", str(PROCESSES)):
        assert app.fail_twice.delay().get(timeout=GUARD_S) == 2
        assert celery.chain(app.add.s(1, 2), app.add.s(3), app.add.s(4)).apply_async().get(timeout=GUARD_S) == 10
        sums = celery.group(app.add.s(number, number) for number in range(20)).apply_async()
        assert sums.get(timeout=GUARD_S) == [2 * number for number in range(20)]
        host = f"{name}@clients"
        assert app.app.control.inspect(destination=[host], timeout=10, limit=1).ping() == {host: {"ok": "pong"}}
        [queues] = app.app.control.inspect(destination=[host], timeout=10, limit=1).active_queues().values()
        assert [queue["name"] for queue in queues] == [name]
