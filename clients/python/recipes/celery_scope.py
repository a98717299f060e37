"""A task's priority scope travels with it: from whoever calls it to the worker, and on to what the task calls.

Import it where the Celery application is made, in the program that calls tasks and in the worker. A task says nothing itself:

    with processing_priority(Priority.LOW):
        update_customer.delay(7)

`apply_async(priority=…)` is explicit and goes before the scope.
"""

from __future__ import annotations

from typing import Any

from celery import signals

from overtake import processing_priority
from overtake.priority import scope_priority
from overtake.wire import PRIORITY_HEADER, has_room, priority_of


@signals.before_task_publish.connect  # type: ignore[untyped-decorator, unused-ignore]
def _say(headers: dict[str, Any], properties: dict[str, Any], **_: Any) -> None:
    """What is called in a scope has its priority, unless the call says another."""
    priority = properties.get("priority")
    # A task that is retried has the header of its last attempt; what holds now is said anew.
    headers.pop(PRIORITY_HEADER, None)
    if priority is None:
        priority = scope_priority()
    # None is there, too: without it Kombu says 0 where nobody says anything.
    properties["priority"] = None
    if priority is not None and has_room(priority):
        properties["priority"] = int(priority)
    elif priority is not None:
        headers[PRIORITY_HEADER] = int(priority)


@signals.task_prerun.connect  # type: ignore[untyped-decorator, unused-ignore]
def _enter(task: Any, **_: Any) -> None:
    """A task runs in the scope of its message."""
    request = task.request
    said = (request.delivery_info or {}).get("priority")
    priority = priority_of(said, {PRIORITY_HEADER: request.get(PRIORITY_HEADER)})
    if priority is not None:
        request.overtake_scope = processing_priority(priority)
        request.overtake_scope.__enter__()


@signals.task_postrun.connect  # type: ignore[untyped-decorator, unused-ignore]
def _leave(task: Any, **_: Any) -> None:
    """The worker's process goes on outside of any scope."""
    scope = getattr(task.request, "overtake_scope", None)
    if scope is not None:
        scope.__exit__(None, None, None)
