"""Every program gets the broker's address from OVERTAKE_AMQP_URL, and nothing else.

A test that is marked `ours` says what Overtake promises beyond RabbitMQ. Against another broker (OVERTAKE_AMQP_OTHER is
set) it is left out; everything else must hold on both.
"""

import os
import uuid

import pytest


@pytest.fixture(scope="session")
def url():
    """Where the broker listens."""
    return os.environ["OVERTAKE_AMQP_URL"]


@pytest.fixture
def name():
    """A name that nobody else has: names outlive their test, tests share the broker."""
    return f"clients-{uuid.uuid4().hex[:12]}"


def pytest_collection_modifyitems(config, items):
    if not os.environ.get("OVERTAKE_AMQP_OTHER"):
        return
    left_out = [item for item in items if item.get_closest_marker("ours")]
    for item in left_out:
        print(f"not run, a promise of Overtake's own: {item.nodeid}")
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
