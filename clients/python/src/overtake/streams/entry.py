"""An entry, as a program gets it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from ..priority import PRIORITY_MAX, PRIORITY_MIN, Priority, named
from .lanes import Lane, Lanes

__all__ = ["Entry"]

#: The one field of an entry.
FIELD = b"data"

Fields = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True)
class Entry:
    """An entry of a stream."""

    id: str
    """Its id, `MILLISECONDS-NUMBER`; another entry of the other lane may have the same."""
    lane: Lane
    """The lane it is in."""
    stream: str
    """The stream it is in."""
    attempt: int
    """How often it was handed over to anybody, this time included."""
    data: Any = field(compare=False)
    """What it is about, read from JSON."""
    metadata: Any = field(compare=False)
    """What is said about it; None where there is nothing."""
    fields: Fields = field(repr=False)
    """All its fields, as they were added."""

    @property
    def priority(self) -> int | None:
        """How urgent its metadata says that it is: a number or a name in `metadata["domain"]["priority"]` or `metadata["priority"]`."""
        if not isinstance(self.metadata, dict):
            return None
        domain = self.metadata.get("domain")
        of_domain = _number(domain.get("priority")) if isinstance(domain, dict) else None
        return _number(self.metadata.get("priority")) if of_domain is None else of_domain

    def priority_in(self, lanes: Lanes) -> int | None:
        """How urgent it is to be handled: as it says.

        What the backfill lane holds is never more urgent than that lane, whatever it says: whoever wrote it there knew, and some write 0
        into the metadata of everything.
        """
        if self.lane is Lane.PRIMARY or (self.priority is not None and self.priority < lanes.threshold):
            return self.priority
        return min(Priority.LOW, max(lanes.threshold - 1, PRIORITY_MIN))


class Unreadable(ValueError):
    """Nobody can read an entry; why."""


def read(lane: Lane, stream: str, entry_id: str, fields: Fields, attempt: int) -> Entry:
    """The entry of these fields."""
    text = next((value for name, value in fields if name == FIELD), None)
    if text is None:
        raise Unreadable("it has no field `data`")
    said = parse(text)
    if "data" not in said:
        raise Unreadable("its object has no `data`")
    return Entry(entry_id, lane, stream, attempt, said["data"], said.get("metadata"), fields)


def parse(text: bytes | str) -> dict[str, Any]:
    """The JSON object of a text."""
    try:
        said = json.loads(text if isinstance(text, str) else text.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is no JSON object: {error}") from error
    if not isinstance(said, dict):
        raise Unreadable("it is no JSON object")
    return said


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _number(value: object) -> int | None:
    if isinstance(value, str):
        number = named(value)
        try:
            value = int(value) if number is None else number
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if PRIORITY_MIN <= value <= PRIORITY_MAX else None
