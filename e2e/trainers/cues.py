"""Communication between a trainer and its test: JSON lines to the test, and points where the trainer waits for it.

The trainers import this module first, because the import makes SIGTERM end them: PID 1 of a container ignores it by
default, and their other imports take seconds.
"""

import json
import os
import signal
import sys
import time

signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def emit(event, **fields):
    print(json.dumps({"event": event, "ms": int(time.time() * 1000), **fields}), flush=True)


def hold(place, places):
    """Waits for the file /tmp/go-PLACE if PLACE is one of the test's hold points."""
    if place not in places:
        return
    emit("hold", at=place)
    while not os.path.exists(f"/tmp/go-{place}"):
        time.sleep(0.05)  # polling interval
    emit("go", at=place)
