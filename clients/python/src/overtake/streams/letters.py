"""What could not be handled, each with how it came to that: beside its lane, and from there back into it.

A dead letter's object is that of the entry and `_dlq_metadata` in it; fields other than that of the object stay as they were. What was
no object is kept in fields that begin with `original:`, so that it comes back as the bytes it was.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ..errors import Refused
from . import scripts
from .entry import FIELD, Fields, Unreadable, parse
from .lanes import CHUNK, Lane, Lanes, dead_letters_of, partitions_of, streams_with
from .steps import Ask, Fault, Steps, T, evaluate, text

__all__ = ["DeadLetter"]

DEATH = "_dlq_metadata"
#: Before the name of a field that was no object.
KEPT = b"original:"
#: Longest reason that is written down.
WHY_LEN_MAX = 1_000
#: So many letters are read at once.
PAGE = 100
#: The largest part of an id.
PART_MAX = 2**64 - 1


def letter(stream: str, letter_id: str, group: str, consumer: str, attempts: int, why: str, fields: Fields) -> Fields:
    """The fields of a dead letter."""
    death = json.dumps(
        {
            "original_stream": stream,
            "original_id": letter_id,
            "consumer_group": group,
            "consumer": consumer,
            "failed_at": datetime.now(UTC).isoformat(),
            "retry_count": attempts,
            "failure_reason": why[:WHY_LEN_MAX],
        }
    )
    for at, (name, value) in enumerate(fields):
        if name == FIELD and (said := _with_death(value, death)) is not None:
            return (*fields[:at], (name, said), *fields[at + 1 :])
    return ((FIELD, f'{{"{DEATH}": {death}}}'.encode()), *((KEPT + name, value) for name, value in fields))


def _with_death(value: bytes, death: str) -> bytes | None:
    """The same text with one more member; None where it is no object."""
    try:
        said = parse(value)
    except Unreadable:
        return None
    if DEATH in said:
        value = json.dumps({name: each for name, each in said.items() if name != DEATH}).encode()
        del said[DEATH]
    # The numbers of others are not ours to write anew.
    head = value.decode().rstrip()[:-1].rstrip()
    return f'{head}{", " if said else ""}"{DEATH}": {death}}}'.encode()


def original(fields: Fields) -> Fields:
    """The fields that a letter was made of."""
    kept = tuple((name.removeprefix(KEPT), value) for name, value in fields if name.startswith(KEPT))
    return kept or tuple((name, _without_death(value) if name == FIELD else value) for name, value in fields)


def _without_death(value: bytes) -> bytes:
    try:
        said = parse(value)
    except Unreadable:
        return value
    if said.pop(DEATH, None) is None:
        return value
    head, mark, _ = value.decode().rpartition(f'"{DEATH}"')
    same = f"{head.rstrip().removesuffix(',')}}}"
    try:
        if mark and parse(same) == said:
            return same.encode()
    except Unreadable:
        pass
    return json.dumps(said).encode()


@dataclass(frozen=True)
class DeadLetter:
    """A dead letter."""

    id: str
    """Its own id among the dead letters of its lane."""
    dead_letters: str
    """The stream of dead letters that it is in."""
    lane: Lane
    """The lane whose dead letter it is."""
    stream: str
    """The stream it came from, and to which it is replayed."""
    original_id: str | None
    """Its id there."""
    group: str | None
    """The group that could not handle it."""
    consumer: str | None
    """Who of that group had it last."""
    failed_at: str | None
    """When, as text; not everybody writes an RFC 3339 time."""
    attempts: int | None
    """How often it was tried."""
    reason: str | None
    """Why."""
    fields: Fields = field(repr=False)
    """The fields of the entry it was."""

    @property
    def name(self) -> str:
        """The name by which it is asked for, unlike that of any other dead letter: `STREAM:dlq/ID`."""
        return f"{self.dead_letters}/{self.id}"

    @property
    def data(self) -> Any:
        """What it is about; None where nobody can read that."""
        try:
            return parse(dict(self.fields).get(FIELD, b"")).get("data")
        except Unreadable:
            return None


def order(letter_id: str) -> tuple[int, int]:
    """The numbers of an id, and nothing that is a bound of a range."""
    match = re.fullmatch(r"([0-9]{1,20})(?:-([0-9]{1,20}))?", letter_id)
    parts = (int(match[1]), int(match[2] or 0)) if match else (PART_MAX + 1, 0)
    if max(parts) > PART_MAX:
        raise ValueError(f"`{letter_id}` is no id of a dead letter: those are as 1700000000000-0")
    return parts


class Letters:
    """What there is to be asked about the dead letters of a category."""

    def __init__(self, category: str, lanes: Lanes) -> None:
        if not category.strip():
            raise ValueError("`category` must be a name")
        self.category = category
        self.lanes = lanes

    def told(self, steps: Steps[T]) -> Steps[T]:
        """With what the server says against it as a refusal."""
        try:
            return (yield from steps)
        except Fault as fault:
            raise Refused(fault.code, f"{self.category}: {fault}") from None

    def _streams(self, lane: Lane | None) -> Steps[list[tuple[Lane, str]]]:
        """The streams that have dead letters, of one lane or of all, those of partitions included."""
        keys = yield Ask(("SMEMBERS", partitions_of(self.category)))
        streams = [each for each in streams_with(self.category, self.lanes, keys) if lane in (None, each[0])]
        found: list[tuple[Lane, str]] = []
        for at in range(0, len(streams), CHUNK):
            some = streams[at : at + CHUNK]
            lengths = yield evaluate(scripts.LENGTHS, [dead_letters_of(stream) for _, stream in some])
            found += [each for each, length in zip(some, lengths, strict=True) if int(length)]
        return found

    def _read(self, lane: Lane, own: str, letter_id: bytes, words: list[bytes]) -> DeadLetter:
        fields: Fields = tuple(zip(words[::2], words[1::2], strict=True))
        try:
            death = parse(dict(fields).get(FIELD, b"")).get(DEATH)
        except Unreadable:
            death = None
        death = death if isinstance(death, dict) else {}
        told = {name: value for name, value in death.items() if isinstance(value, str)}
        # Whoever may write a dead letter may not thereby write anywhere else.
        stream = told.get("original_stream", "")
        if stream != self.category and not stream.startswith(f"{self.category}:"):
            stream = own
        count = death.get("retry_count")
        return DeadLetter(
            id=text(letter_id),
            dead_letters=dead_letters_of(own),
            lane=lane,
            stream=stream,
            original_id=told.get("original_id"),
            group=told.get("consumer_group"),
            consumer=told.get("consumer"),
            failed_at=told.get("failed_at"),
            attempts=count if isinstance(count, int) else None,
            reason=told.get("failure_reason"),
            fields=original(fields),
        )

    def list(self, limit: int) -> Steps[list[DeadLetter]]:
        """The newest of all lanes and partitions, so many at most."""
        found: list[DeadLetter] = []
        for lane, own in (yield from self._streams(None)):
            here: list[DeadLetter] = []
            before = "+"
            while len(here) < limit:
                asked = min(PAGE, limit - len(here))
                page = yield Ask(("XREVRANGE", dead_letters_of(own), before, "-", "COUNT", asked))
                here += [self._read(lane, own, *each) for each in page]
                if len(page) < asked:
                    break
                before = f"({here[-1].id}"
            found += here
        found.sort(key=lambda letter: order(letter.id), reverse=True)
        return found[:limit]

    def inspect(self, letter_id: str, lane: Lane | None) -> Steps[DeadLetter | None]:
        """The letter of an id or a name."""
        home, _, letter_id = letter_id.rpartition("/")
        order(letter_id)
        found: list[DeadLetter] = []
        for each, own in (yield from self._streams(lane)):
            if home in ("", dead_letters_of(own)):
                page = yield Ask(("XRANGE", dead_letters_of(own), letter_id, letter_id, "COUNT", 1))
                found += [self._read(each, own, *one) for one in page]
        if len(found) > 1:
            names = ", ".join(each.name for each in found)
            raise ValueError(f"several streams have a dead letter {letter_id}: say which lane, or one of {names}")
        return found[0] if found else None

    def replay(self, letter_id: str, lane: Lane | None) -> Steps[bool]:
        """Puts a letter back."""
        found = yield from self.inspect(letter_id, lane)
        return False if found is None else (yield from self._put_back(found))

    def _put_back(self, letter: DeadLetter) -> Steps[bool]:
        words = [word for pair in letter.fields for word in pair]
        answer = yield evaluate(scripts.REPLAY, [letter.dead_letters, letter.stream], letter.id, *words)
        return int(answer) == 1

    def replay_all(self, lane: Lane | None) -> Steps[int]:
        """Puts back all there are; those that come meanwhile stay."""
        count = 0
        for each, own in (yield from self._streams(lane)):
            dead = dead_letters_of(own)
            newest = yield Ask(("XREVRANGE", dead, "+", "-", "COUNT", 1))
            start = "-"
            while newest:
                page = yield Ask(("XRANGE", dead, start, newest[0][0], "COUNT", PAGE))
                if not page:
                    break
                for one in page:
                    count += yield from self._put_back(self._read(each, own, *one))
                start = f"({text(page[-1][0])}"
        return count

    def remove(self, letter_id: str, lane: Lane | None) -> Steps[bool]:
        """Deletes a letter."""
        found = yield from self.inspect(letter_id, lane)
        if found is None:
            return False
        return int((yield Ask(("XDEL", found.dead_letters, found.id)))) == 1

    def purge(self, lane: Lane | None) -> Steps[int]:
        """Deletes all there are."""
        count = 0
        for _, own in (yield from self._streams(lane)):
            count += int((yield evaluate(scripts.PURGE, [dead_letters_of(own)])))
        return count
