"""pika, blocking: a connection, a second one for somebody else, and a channel on each."""

import contextlib

import pika
import pytest


@pytest.fixture
def connect(url):
    """Opens as many connections as a test wants, and closes what it left open."""
    with contextlib.ExitStack() as stack:

        def connect(**settings):
            parameters = pika.URLParameters(url)
            for key, value in settings.items():
                setattr(parameters, key, value)
            connection = pika.BlockingConnection(parameters)
            stack.callback(lambda: connection.is_open and connection.close())
            return connection

        yield connect


@pytest.fixture
def connection(connect):
    return connect()


@pytest.fixture
def channel(connection):
    return connection.channel()


@pytest.fixture
def other_connection(connect):
    return connect()


@pytest.fixture
def other_channel(other_connection):
    return other_connection.channel()
