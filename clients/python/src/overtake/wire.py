"""Where a priority stands in a message of AMQP.

From 0 to 255 it is the property `priority`; else, since the property is one byte, the header `x-processing-priority`. Nothing
said is nothing sent, and an explicit 0 is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .priority import named

PRIORITY_HEADER = "x-processing-priority"
ID_HEADER = "x-overtake-id"
KEY_HEADER = "x-overtake-key"
KEY_WEIGHT_HEADER = "x-overtake-key-weight"
COUNT_HEADER = "x-delivery-count"
CREDIT_ARGUMENT = "x-urgent-credit"
PRIORITY_ARGUMENT = "x-priority"

#: Headers that are fields of what came.
FIELDS = frozenset({PRIORITY_HEADER, ID_HEADER, KEY_HEADER, KEY_WEIGHT_HEADER})

#: The greatest priority that the property has room for.
PROPERTY_MAX = 255


def has_room(priority: int) -> bool:
    """Whether the property can say it."""
    return 0 <= priority <= PROPERTY_MAX


def priority_of(said: int | None, headers: Mapping[str, Any]) -> int | None:
    """What a message says: the header goes before the property."""
    header = headers.get(PRIORITY_HEADER)
    if header is None or isinstance(header, bool):
        return said
    if isinstance(header, int):
        return header
    return named(header) if isinstance(header, str) else said


def consuming(urgent_credit: Mapping[str, int] | None, consumer_priority: int | None) -> dict[str, Any]:
    """What a consumer asks for besides."""
    arguments: dict[str, Any] = {}
    if urgent_credit is not None:
        arguments[CREDIT_ARGUMENT] = dict(urgent_credit)
    if consumer_priority is not None:
        arguments[PRIORITY_ARGUMENT] = consumer_priority
    return arguments
