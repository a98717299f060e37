"""Programs that speak HTTP to the broker, with what people have for it. All are promises of Overtake's own port."""

import os

import pytest
import requests


def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.ours)


@pytest.fixture(scope="session")
def http():
    """Where the broker serves HTTP."""
    return os.environ["OVERTAKE_HTTP_URL"]


class Guest(requests.Session):
    """The user guest, who asks under this address."""

    def __init__(self, base):
        super().__init__()
        self.auth = ("guest", "guest")
        self.base = base

    def ask(self, method, path, status, **more):
        answer = self.request(method, self.base + path, **more)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None


@pytest.fixture(scope="session")
def guest(http):
    return Guest(http)
