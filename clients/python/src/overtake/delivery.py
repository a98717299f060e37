"""What came over AMQP, read the same way by both clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from .content import Content
from .wire import COUNT_HEADER, FIELDS, ID_HEADER, KEY_HEADER, KEY_WEIGHT_HEADER, priority_of

__all__ = ["Received"]


class _Properties(Protocol):
    """What the properties of both libraries below have in common."""

    headers: Any
    priority: Any
    correlation_id: Any
    reply_to: Any
    content_type: Any
    user_id: Any


class Received(Content):
    """A message as it came: nothing here asks the broker for anything."""

    __slots__ = ("_headers", "_properties", "body", "exchange", "queue", "redelivered", "routing_key")

    def __init__(
        self, queue: str, body: bytes, properties: _Properties, redelivered: bool, exchange: str, routing_key: str
    ) -> None:
        self.queue = queue
        """Whence it came."""
        self.body = body
        """The content."""
        self.redelivered = redelivered
        """Whether it may have been in somebody's hands before."""
        self.exchange = exchange
        """By which exchange it was published; empty for the default one."""
        self.routing_key = routing_key
        """With which routing key; for the default exchange the name of the queue."""
        self._properties = properties
        self._headers: Mapping[str, Any] = properties.headers or {}

    @property
    def priority(self) -> int | None:
        """What it was published with, or reprioritised to since; None if it says nothing."""
        return priority_of(self._properties.priority, self._headers)

    @property
    def headers(self) -> dict[str, Any]:
        """What travels beside the body, without what are fields here."""
        return {name: value for name, value in self._headers.items() if name not in FIELDS}

    @property
    def id(self) -> str | None:
        """The name that its publisher gave it."""
        return self._headers.get(ID_HEADER)

    @property
    def key(self) -> str | None:
        """What it is about."""
        return self._headers.get(KEY_HEADER)

    @property
    def key_weight(self) -> int | None:
        """The weight that its publisher gave its key."""
        return self._headers.get(KEY_WEIGHT_HEADER)

    @property
    def count(self) -> int:
        """How often it was given out, this time included."""
        return int(self._headers.get(COUNT_HEADER, 0)) + 1

    @property
    def correlation_id(self) -> str | None:
        """Which question it answers, or is."""
        return _text(self._properties.correlation_id)

    @property
    def reply_to(self) -> str | None:
        """The queue for answers."""
        return _text(self._properties.reply_to)

    @property
    def content_type(self) -> str | None:
        """The media type of the body."""
        return _text(self._properties.content_type)

    @property
    def kind(self) -> str | None:
        """What it is, if its publisher said so (AMQP's property `type`)."""
        properties = self._properties
        # The two libraries below have two names for it.
        return _text(getattr(properties, "type", None) or getattr(properties, "message_type", None))

    @property
    def user_id(self) -> str | None:
        """Who published it, if that was said."""
        return _text(self._properties.user_id)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.queue}, priority {self.priority}, {len(self.body)} bytes>"


def _text(value: Any) -> str | None:
    """One of the libraries below gives bytes where others sent what is no UTF-8."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value or None
