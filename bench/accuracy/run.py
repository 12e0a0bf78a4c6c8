"""make accuracy: how each sampling contract changes a model's accuracy, and how many origin reads it saves.

usage: run.py --build DIR [--out DIR] [--seeds 5] [--seeds-max 20] [--sets SET ...] [--only ROW ...] [--page FILE]
              [--fresh]

Trains a small network on the CPU through the real stoker-sidecar, whose cache holds a fifth of the data set, for every
contract, data set and seed. Each run is written to OUT/runs.jsonl when it ends; a restart reuses these runs if
programs, parameters and epochs are the same. Rows whose interval is too wide to tell whether their bar is held get five
seeds more, up to --seeds-max. Exits with 1 if a bar is broken, with 2 if an interval is still too wide.
"""

import argparse
import hashlib
import json
import os
import pathlib
import sys
import warnings

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # before numpy: a second thread only spins

import data  # noqa: E402
import page  # noqa: E402
import train  # noqa: E402


def fingerprint(build):
    """Digest of everything that affects a run: the sidecar, the client, and the training code."""
    here = pathlib.Path(__file__).resolve().parent
    package = build / "python" / "stoker"
    files = [build / "bin" / "stoker-sidecar", *(here / name for name in ("train.py", "data.py", "glyphs.py")),
             here.parent / "servers.py",
             *sorted(path for path in package.rglob("*") if path.suffix in (".py", ".so"))]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def had(path, programs):
    """Runs of earlier starts that are still valid, by (data, row, seed)."""
    if not path.exists():
        return {}
    runs = map(json.loads, path.read_text().splitlines())
    return {(run["data"], run["row"], run["seed"]): run for run in runs if run["programs"] == programs}


def sweep(arguments, file, links):
    """All runs, new and reused, by (data, row, seed), and the rows that the sidecar refuses. `links`: by data set, see
    train.measure()."""
    import stoker

    programs = fingerprint(arguments.build)
    if arguments.fresh:
        file.unlink(missing_ok=True)
    runs, refused = had(file, programs), {}
    for seed in range(arguments.seeds):
        for name in arguments.sets:
            missing = [row for row in arguments.only if (name, row, seed) not in runs and row not in refused]
            origin = data.prepare(arguments.out, name, seed) if missing else None
            for row in missing:
                try:
                    result = train.measure(arguments.build, arguments.out / "run", origin, row, seed, train.EPOCHS[name],
                                           links.get(name))
                except stoker.SettingsError as error:
                    print(f"{row}: refused: {error}", file=sys.stderr, flush=True)
                    refused[row] = str(error)
                    continue
                run = {"data": name, "row": row, "seed": seed, "programs": programs, **result}
                runs[name, row, seed] = run
                with open(file, "a") as out:
                    out.write(json.dumps(run) + "\n")
                print(f"{name:10} {row:28} seed {seed}: accuracy {run['curve'][-1]:.2f} %, origin "
                      f"{run['origin_bytes'] / 1e6:.1f} MB, {run['seconds'][-1]:.0f} s, of these {run['waited']:.0f} s "
                      "waiting", flush=True)
    return {key: run for key, run in runs.items()
            if key[0] in arguments.sets and key[1] in arguments.only and key[2] < arguments.seeds}, refused


def parser_of(description, sets, default_sets, rows):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/accuracy"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", nargs="*", default=default_sets, choices=sets)
    parser.add_argument("--only", nargs="*", default=rows, choices=rows)
    parser.add_argument("--fresh", action="store_true", help="ignore the runs of earlier starts")
    parser.add_argument("--page", type=pathlib.Path, help="write table and plots into that page")
    return parser


def swept(arguments, file, links):
    """Calls sweep() with the client of the build. `file`: name of the file of runs in --out."""
    arguments.build, arguments.out = arguments.build.resolve(), arguments.out.resolve()
    arguments.out.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(arguments.build / "python"))
    os.environ["STOKER_DATASETS"] = "{}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sweep(arguments, arguments.out / file, links)


def main():
    parser = parser_of(__doc__, list(data.SETS), list(data.SETS), list(train.ROWS))
    parser.add_argument("--seeds-max", type=int, default=0,
                        help="seeds of rows whose interval is too wide (default: --seeds)")
    arguments = parser.parse_args()
    arguments.seeds_max = max(arguments.seeds_max, arguments.seeds)
    runs, refused = swept(arguments, "runs.jsonl", {})
    table = page.summarize(list(runs.values()))
    while (rows := page.undecided(table)) and arguments.seeds < arguments.seeds_max:
        arguments.fresh = False  # the next start must keep the runs of this one
        arguments.seeds = min(arguments.seeds + 5, arguments.seeds_max)
        arguments.only = [page.EXACT, *rows]
        more, _ = swept(arguments, "runs.jsonl", {})
        runs.update(more)
        table = page.summarize(list(runs.values()))
    runs = list(runs.values())
    print(page.as_text(table))
    if arguments.page:
        page.write(arguments.page, table, runs, refused)
    sys.exit(page.verdict(table))


if __name__ == "__main__":
    main()
