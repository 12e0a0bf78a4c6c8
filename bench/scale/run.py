"""Runs stoker-bench-scale and prints its rows as a table (`make scale`)."""

import json
import pathlib
import subprocess
import sys

ROWS = [
    ("ready: peak of memory, MiB", "ready", "memory_peak_mib", 256),
    ("ready: time, s", "ready", "seconds", None),
    ("new TrainingJob to its Job, p50, s", "new_jobs", "p50_seconds", None),
    ("new TrainingJob to its Job, p99, s", "new_jobs", "p99_seconds", 1),
    ("all sidecars attached, s", "attach", "seconds", None),
    ("all sidecars have grants, s", "attach", "granted_seconds", None),
    ("steady state: cores", "steady", "cores", 0.3),
    ("steady state: memory, MiB", "steady", "memory_mib", None),
    ("fail-over: lease, s", "lease", "seconds", None),
    ("fail-over: all sidecars attached after it, s", "failover", "seconds", 20),
    ("fail-over: processor time to attach all, s", "failover", "cpu_seconds", 10),
    ("fail-over: all grants repeated, s", "failover", "granted_seconds", None),
]


def main() -> int:
    build = pathlib.Path(sys.argv[1])
    command = [build / "bin/stoker-bench-scale", "--operator", build / "bin/stoker-operator"]
    run = subprocess.run(
        [*map(str, command), *sys.argv[2:]], stdout=subprocess.PIPE, text=True, check=False
    )
    rows: dict[str, dict[str, float]] = {}
    for line in run.stdout.splitlines():
        row = json.loads(line)
        rows.setdefault(row["row"], row)
    print(f"{'':48} {'now':>10} {'bar':>8}")
    for title, row, field, bar in ROWS:
        now = rows.get(row, {}).get(field, "-")
        print(f"{title:48} {now:>10} {'' if bar is None else bar:>8}")
    out = build / "bench" / "scale.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(list(rows.values()), indent=1) + "\n")
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
