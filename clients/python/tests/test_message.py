"""What becomes of a message on the wire, and of what comes back; without a broker."""

from __future__ import annotations

from typing import Any

import pika
import pytest

from overtake import Message, Priority, processing_priority
from overtake.delivery import Received
from overtake.message import encoded
from overtake.numbering import Numbering
from overtake.wire import priority_of


def wire(**fields: Any) -> dict[str, Any]:
    """Property and header, as far as they are there."""
    _, properties = encoded(Message(b"", **fields))
    headers = properties.get("headers", {})
    said = {"property": properties.get("priority"), "header": headers.get("x-processing-priority")}
    return {where: number for where, number in said.items() if number is not None}


@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        (None, {}),
        (0, {"property": 0}),
        (7, {"property": 7}),
        (255, {"property": 255}),
        (256, {"header": 256}),
        (Priority.LOW, {"header": -50}),
        (-(2**31), {"header": -(2**31)}),
    ],
)
def test_a_priority_is_the_property_where_it_has_room(priority: int | None, expected: dict[str, int]) -> None:
    assert wire(priority=priority) == expected
    assert all(type(number) is int for number in wire(priority=priority).values())


def test_the_scope_is_said_and_an_explicit_0_is_explicit() -> None:
    with processing_priority(Priority.LOW):
        assert wire() == {"header": -50}
        assert wire(priority=0) == {"property": 0}


def test_a_header_written_by_hand_goes_before_the_scope_and_after_the_field() -> None:
    with processing_priority(Priority.LOW):
        assert wire(headers={"x-processing-priority": 300}) == {"header": 300}
        assert wire(headers={"x-processing-priority": 300}, priority=1) == {"property": 1}


def test_the_headers_of_the_caller_stay_as_they_are() -> None:
    headers = {"a": 1}
    encoded(Message(b"", headers=headers, priority=-1, id="i", key="k"))
    assert headers == {"a": 1}


def test_text_is_utf_8_and_says_so() -> None:
    body, properties = encoded(Message("ä"))
    assert (body, properties["content_type"]) == ("ä".encode(), "text/plain; charset=utf-8")
    assert encoded(Message("{}", content_type="application/json"))[1]["content_type"] == "application/json"


def test_what_is_neither_bytes_nor_text_says_what_to_do() -> None:
    with pytest.raises(TypeError, match=r"json\.dumps"):
        encoded(Message({"a": 1}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "headers", "expected"),
    [
        (None, {}, None),
        (0, {}, 0),
        (9, {"x-processing-priority": -50}, -50),
        (None, {"x-processing-priority": "high"}, 50),
        (None, {"x-processing-priority": "background"}, -100),
        (3, {"x-processing-priority": True}, 3),
    ],
)
def test_what_a_message_says_is_read_back(said: int | None, headers: dict[str, Any], expected: int | None) -> None:
    assert priority_of(said, headers) == expected


def test_what_are_fields_are_no_headers() -> None:
    headers = {
        "x-processing-priority": 300,
        "x-overtake-id": "i",
        "x-overtake-key": "k",
        "x-overtake-key-weight": 3,
        "mine": 1,
    }
    received = Received("q", b"{}", pika.BasicProperties(headers=headers), False, "", "q")
    assert (received.priority, received.id, received.key, received.key_weight) == (300, "i", "k", 3)
    assert received.headers == {"mine": 1}
    assert (received.json(), received.count, received.reply_to) == ({}, 1, None)


def test_the_floor_is_the_least_number_whose_fate_is_open() -> None:
    numbering = Numbering()
    first, second, third = numbering.next(), numbering.next(), numbering.next()
    assert (first, second, third) == (0, 1, 2)
    numbering.close(second)
    assert numbering.headers(third)["x-overtake-floor"] == 0
    numbering.close(first)
    assert numbering.headers(third)["x-overtake-floor"] == 2
