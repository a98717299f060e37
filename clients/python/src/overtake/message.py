"""A message as it is published, and what becomes of it on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypedDict

from .durations import Duration, milliseconds
from .priority import resolved
from .wire import ID_HEADER, KEY_HEADER, KEY_WEIGHT_HEADER, PRIORITY_HEADER, has_room

__all__ = ["Message"]

_TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Message:
    """A message for `publish_all`; its fields are the arguments of `publish`."""

    body: bytes | str
    """The content. Text is sent as UTF-8, with the content type `text/plain; charset=utf-8` unless it has one."""
    _: KW_ONLY
    priority: int | None = None
    """Else the scope's, else none. An explicit 0 is explicit."""
    headers: Mapping[str, Any] | None = None
    """What travels beside the body."""
    ttl_ms: Duration | None = None
    """How long it lives: ms, or with a unit as in `"5m"`, or a `timedelta`."""
    id: str | None = None
    """Its name: while one of that name waits in the queue, another is confirmed and not stored."""
    key: str | None = None
    """What it is about: one of each key is kept, limited or given its turn, as the queue's settings say."""
    key_weight: int | None = None
    """How many turns its key has beside others, 1 to 1000, where keys take turns and the queue's settings give this key no weight."""
    correlation_id: str | None = None
    """Which question it answers."""
    reply_to: str | None = None
    """The queue for answers."""
    content_type: str | None = None
    """The media type of the body."""
    kind: str | None = None
    """What it is, for whoever reads it (AMQP's property `type`)."""
    delay_ms: Duration | None = None
    """For an exchange that delays: how long, as in `ttl_ms` (the header `x-delay`)."""
    user_id: str | None = None
    """Who says so; the broker checks it."""
    mandatory: bool | None = None
    """Whether a queue must get it, or it is `Unroutable`; else yes for one to a queue, and no for one to an exchange."""

    def must_arrive(self, exchange: str) -> bool:
        """Whether a queue must get it, published there."""
        return exchange == "" if self.mandatory is None else self.mandatory


class Properties(TypedDict, total=False):
    """Properties of AMQP that are there, by their names."""

    headers: dict[str, Any]
    priority: int
    expiration: str
    correlation_id: str
    reply_to: str
    content_type: str
    type: str
    user_id: str
    delivery_mode: int


def encoded(message: Message) -> tuple[bytes, Properties]:
    """Body and properties, decided where it is published: the scope is the caller's."""
    body = message.body
    properties: Properties = {"delivery_mode": 2}
    content_type = message.content_type
    if isinstance(body, str):
        body = body.encode()
        content_type = content_type or _TEXT
    elif not isinstance(body, bytes):
        raise TypeError(
            f"a body is bytes or str, not {type(body).__name__}: encode it first, for example by json.dumps"
        )
    if content_type is not None:
        properties["content_type"] = content_type
    headers = dict(message.headers) if message.headers else {}
    _put_priority(message, headers, properties)
    if message.id is not None:
        headers[ID_HEADER] = message.id
    if message.key is not None:
        headers[KEY_HEADER] = message.key
    if message.key_weight is not None:
        headers[KEY_WEIGHT_HEADER] = message.key_weight
    if message.delay_ms is not None:
        headers["x-delay"] = milliseconds(message.delay_ms, "delay_ms")
    if headers:
        properties["headers"] = headers
    if message.ttl_ms is not None:
        properties["expiration"] = str(milliseconds(message.ttl_ms, "ttl_ms"))
    if message.correlation_id is not None:
        properties["correlation_id"] = message.correlation_id
    if message.reply_to is not None:
        properties["reply_to"] = message.reply_to
    if message.kind is not None:
        properties["type"] = message.kind
    if message.user_id is not None:
        properties["user_id"] = message.user_id
    return body, properties


def _put_priority(message: Message, headers: dict[str, Any], properties: Properties) -> None:
    """A header that somebody wrote by hand says it as well as the field does; the field goes before it."""
    if message.priority is None and PRIORITY_HEADER in headers:
        return
    headers.pop(PRIORITY_HEADER, None)
    priority = resolved(message.priority)
    if priority is None:
        return
    if has_room(priority):
        properties["priority"] = int(priority)
    else:
        headers[PRIORITY_HEADER] = int(priority)
