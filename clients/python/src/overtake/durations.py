"""Durations as the command line has them: `"250ms"`, `"30s"`, `"5m"`, `"1h30m"`, `"7d"`. One function reads them all.

A plain number keeps the unit that its argument says: seconds, or milliseconds where the name ends with `_ms`.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, overload

__all__ = ["Duration"]

#: A number in the argument's own unit, text with a unit, or a `timedelta`.
Duration = float | str | timedelta

_UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_PART = re.compile(r"\s*(\d+)\s*(ms|[dhms])(?![a-z])")


@overload
def seconds(value: Duration, name: str) -> float: ...
@overload
def seconds(value: Duration | None, name: str) -> float | None: ...
def seconds(value: Duration | None, name: str) -> float | None:
    """A duration in seconds; a number is one already. `name` is the argument it was given as."""
    if value is None or _is_number(value, name):
        return value  # type: ignore[return-value]
    return _exactly_ms(value, name) / 1000


@overload
def milliseconds(value: Duration, name: str) -> int: ...
@overload
def milliseconds(value: Duration | None, name: str) -> int | None: ...
def milliseconds(value: Duration | None, name: str) -> int | None:
    """A duration in whole milliseconds; a number is one already."""
    if value is None:
        return None
    return round(value if _is_number(value, name) else _exactly_ms(value, name))  # type: ignore[arg-type]


def whole_seconds(value: Duration, name: str) -> int:
    """A duration in seconds, of which there is no part."""
    number = seconds(value, name)
    if number != int(number):
        raise ValueError(f"`{name}` is in whole seconds, not {value!r}: say {max(round(number), 1)}s")
    return int(number)


def settings(given: dict[str, Any]) -> dict[str, Any]:
    """Settings of the broker: what ends with `_ms` may be said with a unit, also within tables."""
    said: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, dict):
            said[name] = settings(value)
        else:
            said[name] = milliseconds(value, name) if _has_unit(name, value) else value
    return said


def _has_unit(name: str, value: object) -> bool:
    return isinstance(value, timedelta) or (name.endswith("_ms") and isinstance(value, str))


def _is_number(value: Duration, name: str) -> bool:
    if isinstance(value, str | timedelta):
        return False
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f'`{name}` is a number, text such as "30s", or a timedelta, not {value!r}')
    return True


def _exactly_ms(value: Duration, name: str) -> float:
    if isinstance(value, timedelta):
        if value < timedelta(0):
            raise ValueError(f"`{name}` is {value}: a duration is not negative")
        return value / timedelta(milliseconds=1)
    return _read(str(value), name)


def _read(text: str, name: str) -> int:
    number = text.strip()
    if number.isascii() and number.isdigit():
        if int(number) == 0:
            return 0
        raise ValueError(f"`{name}`: {text!r} has no unit: say {number}s for seconds, or {number}ms for milliseconds")
    total, at, units = 0, 0, list(_UNITS_MS)
    while (part := _PART.match(number, at)) is not None and part[2] in units:
        total += int(part[1]) * _UNITS_MS[part[2]]
        # The longest unit first, and none twice.
        units, at = units[units.index(part[2]) + 1 :], part.end()
    if at == 0 or at != len(number):
        raise ValueError(
            f"`{name}`: {text!r} is no duration: say it as in 250ms, 30s, 5m, 1h30m, 7d, or hand in a timedelta"
        )
    return total
