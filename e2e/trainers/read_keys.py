"""A test trainer that reads samples one by one and prints for each its key, size and digest, or the error."""

from cues import emit, hold  # first, so that SIGTERM ends this program; pylint: disable=wrong-import-order

import argparse
import hashlib

import stoker


def hold_before(options, round_number):
    place = f"{round_number}:0"
    hold(place, [place] if options.hold_each else options.hold)


def read(samples, number, fail=False):
    try:
        sample = samples[number]
    except stoker.OriginError as error:
        if fail:
            raise
        return {"error": type(error).__name__, "key": error.key, "words": str(error)}
    return {"key": sample.key, "size": len(sample.view), "sha256": hashlib.sha256(sample.view).hexdigest()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--hold", metavar="ROUND:0", action="append", default=[], help="wait here for a file")
    parser.add_argument("--hold-each", action="store_true", help="wait before every round, and after the last one")
    parser.add_argument("--skip", metavar="ID", type=int, action="append", default=[], help="do not read this sample")
    parser.add_argument("--plan", action="store_true", help="set each round's order as a plan, so that the sidecar prefetches it")
    parser.add_argument("--fail", action="store_true", help="exit at the first sample that cannot be read")
    options = parser.parse_args()
    with stoker.open("train") as samples:
        emit("start", samples=len(samples))
        for round_number in range(options.rounds):
            hold_before(options, round_number)
            # Each round begins one sample later than the previous round.
            order = [(number + round_number) % len(samples) for number in range(len(samples))]
            if options.plan:
                samples.set_plan(round_number, order)
            for number in order:
                if number in options.skip:
                    continue
                emit("sample", round=round_number, id=number, **read(samples, number, options.fail))
        hold_before(options, options.rounds)
        emit("end", stats=samples.stats())


if __name__ == "__main__":
    main()
