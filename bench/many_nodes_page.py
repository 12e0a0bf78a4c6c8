"""The table and the plot of docs/experiments/many-nodes.md, and the numbers of its runs."""

SAMPLES = 3200
SAMPLE_BYTES = 10_000
BATCH = 8
EPOCHS = 4
POOL = 1.5  # cache capacity of all nodes together, as a multiple of the dataset
ORIGIN_RATE = 4_000_000  # bytes a second, for all nodes together
FIRST_BYTE_MS = 20
COMPUTE = 500  # samples a second and rank
RTTS_MS = (0.2, 2, 20)
REAL = (1, 2, 3)
SIMULATED = (1, 2, 3, 4, 8, 16, 32, 64)

COLOURS = {None: "#c44e52", 0.2: "#4c72b0", 2: "#55a868", 20: "#8172b3"}
MARKS = {None: "x", 0.2: "o", 2: "s", 20: "D"}


def later_seconds(row):
    """Mean of the epochs after the first."""
    return sum(row["seconds"][1:]) / (len(row["seconds"]) - 1)


def name_of(rtt_ms):
    return "without peers" if rtt_ms is None else f"peers, RTT {rtt_ms:g} ms"


def table(results):
    heads = ("nodes", "", "peers", "MB from the origin", "of the dataset", "first epoch, s", "later epochs, s",
             "compute alone, s", "instead of a peer")
    lines = [f"| {' | '.join(heads)} |", f"| {' | '.join('---' for _ in heads)} |"]
    for row in results["runs"]:
        cells = (row["nodes"], row["kind"], "off" if row["rtt_ms"] is None else f"RTT {row['rtt_ms']:g} ms",
                 f"{row['gets'] * SAMPLE_BYTES / 1e6:.1f}", f"{row['gets'] / SAMPLES:.2f}", f"{row['seconds'][0]:.2f}",
                 f"{later_seconds(row):.2f}", f"{-(-SAMPLES // row['nodes']) / COMPUTE:.2f}", row["instead_of_peers"])
        lines.append(f"| {' | '.join(map(str, cells))} |")
    trips = ", ".join(f"{float(rtt):g} ms: {took:.2f} ms" for rtt, took in results["round_trips_ms"].items())
    return "\n".join(lines) + f"\n\nRound trip of a byte through the relay, median of 100: {trips}."


def draw(results, path):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    settings = {"svg.hashsalt": "stoker", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False,
                "legend.frameon": False}
    with plt.rc_context(settings):
        figure, (origin, epoch) = plt.subplots(1, 2, figsize=(9.5, 4.4))
        for rtt in (None, *RTTS_MS):
            plot_runs(origin, results, rtt, lambda row: row["gets"] / SAMPLES)
            plot_runs(epoch, results, rtt, later_seconds)
        ideal = [SAMPLES / nodes / COMPUTE for nodes in SIMULATED]
        epoch.plot(SIMULATED, ideal, ":", color="#808080", label="compute alone")
        origin.set(ylabel=f"bytes from the origin in {EPOCHS} epochs, datasets", ylim=(0, EPOCHS + 0.2))
        epoch.set(ylabel="seconds, mean of the epochs after the first", yscale="log", yticks=(0.1, 0.2, 0.5, 1, 2, 5, 10),
                  yticklabels=("0.1", "0.2", "0.5", "1", "2", "5", "10"))
        epoch.minorticks_off()
        for axis in (origin, epoch):
            axis.set_xscale("log", base=2)
            axis.set(xlabel="nodes", xticks=SIMULATED, xticklabels=map(str, SIMULATED))
        handles, labels = epoch.get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncol=len(labels))
        figure.tight_layout(rect=(0, 0.07, 1, 1))
        figure.savefig(path, metadata={"Date": None})


def plot_runs(axis, results, rtt, value):
    """Simulated nodes as a line, real ones as marks. The widths and sizes differ, because many points are equal."""
    width, size = {None: (1.5, 7), 0.2: (6, 11), 2: (3.5, 8), 20: (1.2, 5)}[rtt]
    rows = [row for row in results["runs"] if row["rtt_ms"] == rtt]
    for kind, style in (("simulated", {"linestyle": "-", "linewidth": width, "label": name_of(rtt)}),
                        ("real", {"linestyle": "", "marker": MARKS[rtt], "markersize": size, "fillstyle": "none"})):
        chosen = [row for row in rows if row["kind"] == kind]
        axis.plot([row["nodes"] for row in chosen], [value(row) for row in chosen], color=COLOURS[rtt], **style)


def write(page, results):
    """Draws the plot beside the page and replaces what is between its marks."""
    draw(results, page.with_suffix(".svg"))
    begin, end = "<!-- many_nodes.py -->\n", "<!-- end -->"
    before, rest = page.read_text().split(begin)
    page.write_text(before + begin + table(results) + "\n" + end + rest.split(end)[1])
