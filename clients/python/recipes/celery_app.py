"""A Celery application whose tasks know how urgent they are: one queue, served by priority.

celery --app recipes.celery_app worker --concurrency 2
"""

from __future__ import annotations

import functools
import os

import celery
from kombu.entity import Queue

from overtake import Client, Priority, current_priority, processing_priority

from . import celery_scope  # noqa: F401 - its import is its use

URL = os.environ.get("OVERTAKE_AMQP_URL", "amqp://localhost")
QUEUE = os.environ.get("OVERTAKE_QUEUE", "tasks")
MAILS = os.environ.get("OVERTAKE_MAILS", "mails")

app = celery.Celery("recipes", broker=URL)
app.conf.update(
    # The scheme knows the five words, and every other number.
    task_queues=[Queue(QUEUE, routing_key=QUEUE, queue_arguments={"x-scheme": "signed"})],  # type: ignore[no-untyped-call]
    task_default_queue=QUEUE,
    # An urgent task overtakes what waits, not what a worker has fetched already.
    worker_prefetch_multiplier=1,
    task_acks_late=True,
    broker_connection_retry_on_startup=True,
    task_ignore_result=True,
)


@app.task(bind=True, max_retries=1, default_retry_delay=0)  # type: ignore[untyped-decorator]
def update_customer(self: celery.Task, customer: int) -> None:
    """Fails once, and then has the mail sent."""
    if self.request.retries == 0:
        raise self.retry()
    send_mail.delay(customer)


@app.task  # type: ignore[untyped-decorator]
def send_mail(customer: int) -> None:
    """The second hop, and a third beside Celery: nobody said how urgent it is."""
    broker().publish(MAILS, f"{customer} at {int(current_priority())}")


@functools.cache
def broker() -> Client:
    """One for each process of the worker, made when it is first needed: after the fork."""
    return Client(URL, http=os.environ.get("OVERTAKE_HTTP_URL"), name="worker")


def backfill(customers: range) -> None:
    """The migration: its tasks, and what these call, are LOW."""
    with processing_priority(Priority.LOW):
        for customer in customers:
            update_customer.delay(customer)
