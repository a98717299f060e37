"""Schemathesis makes requests of the document that the broker serves: no 5xx, and nothing outside the schema."""

import os
import subprocess
import sys

import pytest

# Whether what fits the schema is accepted is no check: a name that fits may still be of nothing, or a hash be none.
CHECKS = ",".join(
    [
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
    ]
)
# One ends the broker's service, one is as large as its store, one never ends.
LEFT_OUT = [word for path in ("/v1/drain", "/v1/store/snapshot", "/v1/overview/events") for word in ("--exclude-path", path)]
# By these guest may be given another password.
PEOPLE = "^/v1/(users|tokens)"


def run(http, *choice):
    program = os.path.join(os.path.dirname(sys.executable), "schemathesis")
    command = [program, "run", f"{http}/openapi.json", "--auth", "guest:guest", "--checks", CHECKS]
    command += ["--phases", "coverage,fuzzing", "--max-examples", "10", "--seed", "1", "--request-timeout", "30"]
    command += ["--no-color", *LEFT_OUT, *choice]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert ended.returncode == 0, ended.stdout[:6000]


@pytest.mark.timeout(500)
def test_messages_queues_and_exchanges_answer_as_the_document_says(http):
    run(http, "--exclude-path-regex", PEOPLE)


@pytest.mark.timeout(500)
def test_users_and_tokens_answer_as_the_document_says(http):
    run(http, "--include-path-regex", PEOPLE)
