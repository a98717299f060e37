"""The scope, without a broker."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from overtake import Priority, current_priority, processing_priority
from overtake.priority import resolved, scope_of


def test_the_five_words_are_numbers() -> None:
    assert [int(word) for word in Priority] == [-100, -50, 0, 50, 100]
    assert Priority.HIGH > Priority.NORMAL > -1


def test_outside_of_any_scope_it_is_normal_and_nothing_is_said() -> None:
    assert current_priority() is Priority.NORMAL
    assert resolved(None) is None


def test_scopes_nest_and_the_innermost_wins() -> None:
    with processing_priority(Priority.LOW):
        assert current_priority() is Priority.LOW
        with processing_priority(Priority.CRITICAL):
            assert current_priority() is Priority.CRITICAL
        assert current_priority() is Priority.LOW
    assert resolved(None) is None


def test_an_exception_ends_a_scope_too() -> None:
    with pytest.raises(KeyError), processing_priority(Priority.BULK):
        raise KeyError
    assert current_priority() is Priority.NORMAL


def test_what_a_message_says_goes_before_the_scope_also_0() -> None:
    with processing_priority(Priority.LOW):
        assert resolved(0) == 0
        assert resolved(Priority.CRITICAL) == 100
        assert resolved(None) == -50


def test_a_scope_may_be_entered_again_inside_itself() -> None:
    low = processing_priority(Priority.LOW)
    with low:
        with processing_priority(7), low:
            assert current_priority() is Priority.LOW
        assert current_priority() is Priority.LOW
    assert resolved(None) is None


def test_a_thread_has_a_scope_of_its_own() -> None:
    seen: list[int | None] = []
    with processing_priority(Priority.LOW):
        thread = threading.Thread(target=lambda: seen.append(resolved(None)))
        thread.start()
        thread.join()
        with ThreadPoolExecutor(2) as pool:
            seen += pool.map(resolved, [None, None])
    assert seen == [None, None, None]


async def test_to_thread_inherits() -> None:
    with processing_priority(Priority.LOW):
        assert await asyncio.to_thread(current_priority) is Priority.LOW


async def test_tasks_inherit_and_are_separate() -> None:
    inside, outside = asyncio.Event(), asyncio.Event()

    async def other() -> int:
        assert current_priority() is Priority.LOW
        async with processing_priority(Priority.HIGH):
            inside.set()
            await outside.wait()
            return current_priority()

    with processing_priority(Priority.LOW):
        task = asyncio.create_task(other())
        await inside.wait()
        assert current_priority() is Priority.LOW
    outside.set()
    assert await task is Priority.HIGH
    assert current_priority() is Priority.NORMAL


async def test_async_with_is_the_same() -> None:
    async def fails() -> None:
        async with processing_priority(Priority.LOW):
            await asyncio.sleep(0)
            assert current_priority() is Priority.LOW
            raise KeyError

    with pytest.raises(KeyError):
        await fails()
    assert current_priority() is Priority.NORMAL


def test_a_message_that_says_nothing_is_handled_outside_of_any_scope() -> None:
    with processing_priority(Priority.LOW):
        with scope_of(None):
            assert resolved(None) is None
        with scope_of(0):
            assert resolved(None) == 0
        assert current_priority() is Priority.LOW


@pytest.mark.parametrize("wrong", [True, 1.0, "HIGH", None])
def test_what_is_no_number_is_a_type_error_that_says_what_to_do(wrong: object) -> None:
    with pytest.raises(TypeError, match=r"take one of Priority\.BULK"):
        processing_priority(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [2**31, -(2**31) - 1])
def test_what_has_no_room_is_a_value_error_that_says_what_to_do(wrong: int) -> None:
    with pytest.raises(ValueError, match="take a number from"):
        processing_priority(wrong)
