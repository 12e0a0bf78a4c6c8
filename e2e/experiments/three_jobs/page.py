#!/usr/bin/env python3
"""Writes the page with the results of run.py; tables and plot show the first run: page.py PAGE.md RESULTS.json..."""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

import observe  # noqa: E402
import scenario  # noqa: E402

NAMES = [job.name for job in scenario.THREE]
TITLES = {"stoker": "Stoker", "even": "`allocation: Even`", "lru": "`allocation: Even`, `evictionPolicy: LRU`"}
COLOURS = {"io-bound": "#0072b2", "half": "#d55e00", "compute-bound": "#009e73", "late": "#cc79a7"}


# --- numbers ----------------------------------------------------------------------------------------------------------


def table(rows):
    head, *rest = [[str(cell) for cell in row] for row in rows]
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rest]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def mib(bytes_):
    return f"{bytes_ / scenario.MIB:.0f}"


def total(rates):
    return sum(rates.values())


def predicted(phase):
    """Samples/s of each job that `kubectl stoker why` predicted at the start of the measurement."""
    return {name: why["allocation"]["bytesPerSecond"] / scenario.SAMPLE_BYTES for name, why in phase["why"].items()}


def rates_table(phases):
    rows = [["samples/s", *NAMES, "together"]]
    for name, phase in phases.items():
        measured = phase["measured"]
        rows.append([f"{TITLES[name]}: measured", *[f"{measured[job]:.1f}" for job in NAMES], f"**{total(measured):.1f}**"])
        if name == "stoker":
            plan = predicted(phase)
            rows.append(["Stoker: the planner's prediction", *[f"{plan[job]:.1f}" for job in NAMES], f"{total(plan):.1f}"])
        split = {job: phase["jobs"][job]["granted"] for job in NAMES}
        sums = scenario.rates(split, "LRU" if name == "lru" else "Auto")
        rows.append([f"{TITLES[name]}: arithmetic", *[f"{sums[job]:.1f}" for job in NAMES], f"{total(sums):.1f}"])
    return table(rows)


def bytes_table(phases):
    rows = [["MiB granted", *NAMES]]
    rows += [[TITLES[name], *[mib(phase["jobs"][job]["granted"]) for job in NAMES]] for name, phase in phases.items()]
    rows.append(["the best division, by exhaustive search", *[mib(scenario.best_split()[job]) for job in NAMES]])
    return table(rows)


def bars(results):
    """[(requirement, result, whether it is met)] of one run."""
    phases = results["phases"]
    mine, plan = total(phases["stoker"]["measured"]), total(predicted(phases["stoker"]))
    off = abs(mine - plan) / plan
    goal = {job: phases["stoker"]["jobs"][job]["granted"] for job in NAMES}
    before = [point for point in results["points"] if point["seconds"] <= phases["stoker"]["end"]]
    moved = observe.seconds_to_arrive(before, results["marks"][0]["seconds"], goal)
    worth, best = (total(scenario.rates(split)) for split in (goal, scenario.best_split()))
    found = [("bytes reach the planned division within 120 s after the jobs are applied", seconds(moved),
              moved is not None and moved <= 120),
             ("the throughput of the plan is ≥ 95 % of the best division, by arithmetic", f"{100 * worth / best:.1f} %",
              worth >= 0.95 * best),
             ("measured within 10 % of the planner's prediction", f"{100 * off:.1f} % away", off <= 0.10)]
    for other in ("even", "lru"):
        ratio = mine / total(phases[other]["measured"])
        found.append((f"≥ 1.3 × {TITLES[other]}", f"{ratio:.2f} ×", ratio >= 1.3))
    verdict = phases["stoker"]["jobs"]["compute-bound"]["reason"]
    found.append(("the compute-bound job's status says ComputeBound", verdict, verdict == "ComputeBound"))
    back = observe.seconds_to_reclaim(results["points"])
    found.append((f"lent bytes are back within the grace period of {scenario.GRACE_SECONDS} s", seconds(back),
                  back is not None and back <= scenario.GRACE_SECONDS))
    apart = why_and_metrics(phases)
    found.append(("`kubectl stoker why` agrees with the metrics", "; ".join(apart) or "in all numbers", not apart))
    return found


def seconds(value):
    return "never" if value is None else f"{value:.0f} s"


def why_and_metrics(phases):
    """Differences between `why` and the metrics at the start of a measurement: any difference in bytes, or more than 1
    % in f*."""
    apart = []
    for phase, told in phases.items():
        for job in NAMES:
            why, metrics = told["why"][job]["allocation"], told["metrics"][job]
            for word, metric, tolerance in (("grantedBytes", "stoker_job_granted_bytes", 0),
                                            ("borrowedBytes", "stoker_job_borrowed_bytes", 0),
                                            ("ingestBytesPerSecond", "stoker_job_ingest_bytes_per_second", 0.01)):
                if abs(why[word] - metrics[metric]) > tolerance * metrics[metric]:
                    apart.append(f"{phase}: {job}: {word} {why[word]:.0f}, {metric} {metrics[metric]:.0f}")
    return apart


# --- the plot ---------------------------------------------------------------------------------------------------------


def draw(results, path):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    settings = {"svg.hashsalt": "stoker", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False,
                "legend.frameon": False}
    with plt.rc_context(settings):
        figure, axis = plt.subplots(figsize=(9.5, 4.2), layout="constrained")
        for name, colour in COLOURS.items():
            told = [(point["seconds"], point["jobs"].get(name)) for point in results["points"]]
            at = [when for when, job in told]
            for what, style in (("used", "-"), ("granted", ":")):
                values = [job[what] / scenario.MIB if job else float("nan") for _, job in told]
                axis.plot(at, values, style, color=colour, label=name if what == "used" else None)
        top = 1.12 * scenario.DATASET_BYTES / scenario.MIB
        for phase in results["phases"].values():
            axis.axvspan(phase["begin"], phase["end"], color="#e4e4e4", zorder=0)
        for number, mark in enumerate(results["marks"]):
            axis.axvline(mark["seconds"], color="#808080", linewidth=0.8)
            axis.text(mark["seconds"] + 3, top * (1 - 0.04 * (number % 3)), mark["name"], va="top", fontsize=8)
        axis.set(xlabel="seconds", ylabel="MiB on the node", ylim=(0, top))
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncol=len(COLOURS))
        figure.savefig(path, metadata={"Date": None})


# --- the page ---------------------------------------------------------------------------------------------------------


def jobs_table():
    rows = [["job", "namespace", "contract", "f*, MB/s", "samples/s at f*", "a step"]]
    for job in (*scenario.THREE, scenario.LATE):
        rows.append([f"`{job.name}`", f"`{job.namespace}`", job.contract, f"{job.ingest / 1e6:g}",
                     f"{job.ingest / scenario.SAMPLE_BYTES:.1f}", f"{job.batch} samples, {job.step_ms:.0f} ms"])
    return table(rows)


def bars_table(runs):
    head = ["requirement", *(f"run {number}" for number in range(1, len(runs) + 1))]
    rows = [[of_one[0][0], *(found if met else f"**{found}: missed**" for _, found, met in of_one)]
            for of_one in zip(*(bars(results) for results in runs))]
    return table([head if len(runs) > 1 else ["requirement", "result"], *rows])


def why_text(phases):
    return "\n\n".join(f"{name}: {phases['stoker']['jobs'][name]['message']}" for name in NAMES)


def write(runs, page):
    results = runs[0]
    phases = results["phases"]
    plot = page.with_suffix(".svg")
    page.parent.mkdir(parents=True, exist_ok=True)
    draw(results, plot)
    loads = ", ".join(f"{phase['load'][0]:.1f}" for phase in phases.values())
    page.write_text((HERE / "page.md").read_text().format(
        bars=bars_table(runs), jobs=jobs_table(), rates=rates_table(phases), bytes=bytes_table(phases), plot=plot.name,
        why=why_text(phases), loads=loads, link=f"{scenario.LINK / 1e6:g}", pool=mib(scenario.POOL_BYTES),
        measure=round(phases["stoker"]["end"] - phases["stoker"]["begin"]),
        epoch=f"{scenario.DATASET_BYTES / scenario.IO_BOUND.ingest:.0f}", dataset=mib(scenario.DATASET_BYTES),
        sample=scenario.SAMPLE_BYTES // 1024, samples=scenario.SAMPLES, window=mib(scenario.WINDOW_BYTES),
        borrower=scenario.BORROWER, lender=scenario.LENDER, nominal_borrower=mib(scenario.NOMINAL[scenario.BORROWER]),
        nominal_lender=mib(scenario.NOMINAL[scenario.LENDER]), grace=scenario.GRACE_SECONDS))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    write([json.loads(pathlib.Path(name).read_text()) for name in sys.argv[2:]], pathlib.Path(sys.argv[1]))
