"""Runs two programs in turns, A-B-B-A, and returns the ratio of their speeds, round by round.

A program is started once, prints `ready`, and then answers each line `FIRST_PASS PASSES` with `SECONDS SUM` after it
has read that many passes over the samples (each in another random order). The sum proves that both read the same bytes.
"""

import os
import subprocess
import time

TURN_S = 0.5  # approximate length of a turn
BUSY_CORES_MAX = 0.3  # processor use of other programs, in cores, that spoils a round
SPARE_ROUNDS = 8


class Program:
    """One side of a benchmark row. `helpers` are the pids of its servers."""

    def __init__(self, command, helpers=(), env=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.pids = [self.process.pid, *helpers]
        if self.process.stdout.readline() != "ready\n":
            raise SystemExit(f"bench: {' '.join(map(str, command))} did not start")
        self.passes = 1
        self.next_pass = 0
        self.pass_sum = None

    def ask(self, first, passes):
        self.process.stdin.write(f"{first} {passes}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().split()
        if len(line) != 2:
            raise SystemExit(f"bench: {' '.join(map(str, self.process.args))} ended in the middle")
        return float(line[0]), line[1]

    def warm_up(self):
        """Makes two untimed passes; then sets the passes per turn to fill TURN_S. The sum of pass 0 identifies the
        bytes."""
        _, self.pass_sum = self.ask(0, 1)
        seconds, _ = self.ask(1, 1)
        self.passes = max(1, round(TURN_S / seconds))
        self.next_pass = 2

    def turn(self):
        """Seconds per pass."""
        seconds, _ = self.ask(self.next_pass, self.passes)
        self.next_pass += self.passes
        return seconds / self.passes

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def busy_seconds(pids):
    """Processor time so far: of the whole machine, and of the given processes."""
    tick = os.sysconf("SC_CLK_TCK")
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(field) for field in file.readline().split()[1:]]
    everything = sum(fields[:3]) + sum(fields[5:8])  # user nice system, irq softirq steal
    ours = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            stat = file.read().rsplit(")", 1)[1].split()
        ours += int(stat[11]) + int(stat[12])
    return everything / tick, ours / tick


def with_foreign_cores(pids, work):
    """(what work() returns, how many cores other programs than `pids` and this one used meanwhile)."""
    began, (all_before, ours_before) = time.monotonic(), busy_seconds(pids)
    value = work()
    wall, (all_after, ours_after) = time.monotonic() - began, busy_seconds(pids)
    return value, ((all_after - all_before) - (ours_after - ours_before)) / wall


class Round:
    """One A-B-B-A round: the ratio of speeds (A over B), and how many cores other programs used meanwhile."""

    def __init__(self, a, b):
        (first_a, first_b, second_b, second_a), self.foreign_cores = with_foreign_cores(
            a.pids + b.pids, lambda: (a.turn(), b.turn(), b.turn(), a.turn()))
        self.ratio = (first_b + second_b) / (first_a + second_a)


def compare(a, b, rounds):
    """Rounds of A against B. Repeats rounds that other programs spoiled, up to a limit, and keeps the quietest."""
    for program in (a, b):
        program.warm_up()
    if "-" not in (a.pass_sum, b.pass_sum) and a.pass_sum != b.pass_sum:
        raise SystemExit(f"bench: the two sides read different bytes: {a.pass_sum} and {b.pass_sum}")
    done = []
    while sum(r.foreign_cores <= BUSY_CORES_MAX for r in done) < rounds and len(done) < rounds + SPARE_ROUNDS:
        done.append(Round(a, b))
    quietest = sorted(done, key=lambda r: r.foreign_cores)[:rounds]
    return [r.ratio for r in quietest], max(r.foreign_cores for r in quietest)
