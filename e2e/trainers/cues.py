"""What a trainer and its test tell each other: lines to the test, leave to read on, and the end.

The programs beside it import it before all else, for what the import does: from then on SIGTERM ends them. As the first
process of a container they would ignore it otherwise, and their own imports take seconds.
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
    """Waits here for the file /tmp/go-PLACE, if it is one of the places at which the test asked for that."""
    if place not in places:
        return
    emit("hold", at=place)
    while not os.path.exists(f"/tmp/go-{place}"):
        time.sleep(0.05)  # between two looks
    emit("go", at=place)
