"""The handler of the end-to-end tests: works for as long as its payload says, and writes when each run begins and ends."""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.request
import uuid

from thunderagent import Fail, HandlerStopped, RunningTask

RECORD = os.environ["HISTORY"]
PATIENCE = 60.0
"""Seconds for which a line is tried to be written; without it, the run must not count as anything."""


def handle(task: RunningTask) -> dict[str, str]:
    """Work for `seconds` of the payload; then fail, if it says so in `fails`."""
    run = uuid.uuid4().hex
    write("begin", task, run)
    try:
        time.sleep(float(task.payload.get("seconds", 0)))
    except HandlerStopped:
        write("stopped", task, run)
        raise
    write("end", task, run)
    if task.payload.get("fails"):
        raise Fail(str(task.payload["fails"]))
    return {"pod": os.environ["HOSTNAME"]}


def write(event: str, task: RunningTask, run: str) -> None:
    """Add a line to the history; return once it is there."""
    line = {"event": event, "task": task.task_id, "run": run, "pod": os.environ["HOSTNAME"], "at": time.time()}
    request = urllib.request.Request(RECORD, data=json.dumps(line).encode(), method="POST")
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            urllib.request.urlopen(request, timeout=5).close()
        except (OSError, http.client.HTTPException):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return
