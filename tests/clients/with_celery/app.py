"""The Celery application that worker and test share: one queue with levels, late acknowledgements, a window of one."""

import hashlib
import os
import pathlib

import celery

import kombu

QUEUE = os.environ["OVERTAKE_QUEUE"]
#: A line for each task that begins, in the order in which they begin.
JOURNAL = pathlib.Path(os.environ["OVERTAKE_JOURNAL"])

app = celery.Celery("clients", broker=os.environ["OVERTAKE_AMQP_URL"], backend="rpc://")
app.conf.update(
    task_queues=[kombu.Queue(QUEUE, routing_key=QUEUE, queue_arguments={"x-max-priority": 9})],
    task_default_queue=QUEUE,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    broker_transport_options={"confirm_publish": True},
    broker_connection_retry_on_startup=True,
    worker_hijack_root_logger=False,
)


def began(line):
    """Appended in one write, so that processes do not mix their lines."""
    with open(JOURNAL, "ab", buffering=0) as journal:
        journal.write(f"{line}\n".encode())


@app.task(bind=True)
def work(self, priority, number):
    began(f"{priority} {number}")
    # Something to do: a thousand rounds of a hash.
    digest = b"%d" % number
    for _ in range(1000):
        digest = hashlib.sha256(digest).digest()
    return digest.hex()


@app.task
def hold(gate):
    """In hand until somebody opens the gate: a named pipe, whose opening waits for the writer."""
    began("hold")
    pathlib.Path(gate).read_bytes()


@app.task(bind=True, max_retries=5, retry_backoff=False)
def fail_twice(self):
    if self.request.retries < 2:
        raise self.retry(countdown=0)
    return self.request.retries


@app.task
def add(x, y):
    return x + y
