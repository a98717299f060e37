"""Header values that the libraries below cannot hold: times beyond the year 9999, and numbers that are none.

Such values are valid in AMQP: a program that writes milliseconds in place of seconds sends such a time. Both libraries lose the whole
connection over one, again and again, since the message comes again. Here such a time is the number that was sent, and every other value
is as they read it. Ruled out: to hand such a message back unread, since then nobody who uses these libraries would ever handle it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pamqp.decode
import pika.data

#: The errors of `datetime.fromtimestamp` and `int`.
_UNREADABLE = (ValueError, OverflowError, OSError)


def _read_by_pika(read: Callable[[bytes, int], tuple[Any, int]]) -> Callable[[bytes, int], tuple[Any, int]]:
    def decode_value(encoded: bytes, offset: int) -> tuple[Any, int]:
        try:
            return read(encoded, offset)
        except _UNREADABLE:
            kind, at = encoded[offset : offset + 1], offset + 1
            for its, layout in ((b"T", ">Q"), (b"f", ">f"), (b"d", ">d")):
                if kind == its:
                    return struct.unpack_from(layout, encoded, at)[0], at + struct.calcsize(layout)
            raise

    return decode_value


def _read_by_pamqp(read: Callable[[bytes], tuple[int, Any]]) -> Callable[[bytes], tuple[int, Any]]:
    def timestamp(value: bytes) -> tuple[int, Any]:
        try:
            return read(value)
        except _UNREADABLE:
            if len(value) < 8:
                raise
            return 8, struct.unpack_from(">Q", value)[0]

    return timestamp


def extend() -> None:
    """Has both libraries read such values."""
    pika.data.decode_value = _read_by_pika(pika.data.decode_value)  # type: ignore[assignment]
    timestamp = _read_by_pamqp(pamqp.decode.timestamp)
    pamqp.decode.METHODS["timestamp"] = timestamp
    pamqp.decode.TABLE_MAPPING[b"T"] = timestamp


extend()
