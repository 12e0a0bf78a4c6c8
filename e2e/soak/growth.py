"""Whether a process grows, and whether a run watched every program: pure functions on the samples of a soak run.

A sample is (seconds, value). A process is one start of one program: after a kill the program is a new process.
"""

import math

SAMPLES_MIN = 8  # fewer samples do not give a slope
SIGMAS = 3
FULL_MINUTES = 15  # a run of at least this length must judge every program
MEMORY_FLOOR = 4 << 20  # bytes over the time that was watched: allocators round, caches of a few entries fill


def slope(points):
    """(slope per second, its standard error) by least squares; neighbouring residuals that are alike widen the
    error."""
    count = len(points)
    mean_x = sum(x for x, _ in points) / count
    mean_y = sum(y for _, y in points) / count
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    found = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    rest = [y - mean_y - found * (x - mean_x) for x, y in points]
    squares = sum(r * r for r in rest)
    alike = sum(a * b for a, b in zip(rest, rest[1:])) / squares if squares > 0 else 0
    alike = min(max(alike, 0), 0.9)
    error = math.sqrt(squares / (count - 2) / spread * (1 + alike) / (1 - alike))
    return found, error


def settled(points, warm_up):
    """The points from `warm_up` seconds after the first one on: before that, caches fill."""
    return [point for point in points if point[0] - points[0][0] >= warm_up]


def growth(points, warm_up, floor):
    """The growth after the warm-up: {gained, noise, samples, grows}; `grows`: it exceeds the noise and `floor`. None if
    there are too few samples."""
    late = settled(points, warm_up)
    if len(late) < SAMPLES_MIN:
        return None
    rate, error = slope(late)
    seconds = late[-1][0] - late[0][0]
    gained, noise = rate * seconds, SIGMAS * error * seconds
    return {"gained": gained, "noise": noise, "samples": len(late), "grows": gained - noise > 0 and gained > floor}


def shortcomings(minutes, seconds, judged, programs, kills):
    """Why a run of `minutes` that took `seconds` says less than it should: it ended early, or was long enough to judge
    every program (`judged`: those that were) and to kill some (`kills`: {program: times}), and did not."""
    found = [] if seconds >= minutes * 60 else [f"the run ended after {seconds / 60:.1f} of {minutes:g} minutes"]
    if minutes >= FULL_MINUTES:
        found += [f"no process of {program} was watched for long enough" for program in programs if program not in judged]
        if sum(kills.values()) == 0:
            found.append("no program was killed")
    return found
