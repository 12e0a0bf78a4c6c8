"""The plots of `make accuracy`: change of accuracy, bytes read from the origin, and accuracy by epoch."""

import math
import statistics

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402  (after the choice of a backend)

import data  # noqa: E402
import page  # noqa: E402
import train  # noqa: E402

# Colours for colour-blind readers (Okabe and Ito), one for each contract.
COLOURS = {"exact": "#000000", "windowed": "#0072b2", "importance": "#d55e00", "iowa": "#cc79a7", "replicate": "#009e73"}
CACHE_COLOURS = {"no cache": "#909090", "LRU": "#e69f00"}
DASHES = ("-", "--", ":")
SETTINGS = {"svg.hashsalt": "stoker", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False,
            "axes.titlesize": 11, "legend.frameon": False}


def colour(row):
    of = train.row_of(row)
    return CACHE_COLOURS.get(row) or COLOURS[of.parameters.get("family", of.contract)]


def dash(row, rows=tuple(train.ROWS)):
    """Dash pattern of a row; it distinguishes rows of the same colour."""
    alike = [other for other in rows if colour(other) == colour(row)]
    return DASHES[alike.index(row) % len(DASHES)]


def panels(table, height, share_x=True):
    """A figure with one panel per data set, and the panels' entries."""
    names = [name for name in data.SETS if any(entry["data"] == name for entry in table)]
    figure, axes = plt.subplots(1, len(names), figsize=(9.5, height), sharex=share_x, sharey=True, squeeze=False,
                                layout="constrained")
    for axis, name in zip(axes[0], names):
        axis.set_title(name)
    return figure, [(axis, [entry for entry in table if entry["data"] == name]) for axis, name in zip(axes[0], names)]


def put_legend(figure, marks, columns):
    """Puts the legend below the panels, and makes room for it."""
    below = 0.3 * math.ceil(len(marks) / columns) / figure.get_figheight()
    figure.get_layout_engine().set(rect=(0, below, 1, 1 - below))
    figure.legend(handles=marks, loc="lower center", ncols=columns)


def draw_changes(table):
    shown = [entry for entry in table if entry["row"] != page.EXACT]
    rows = [row for row in train.ROWS if any(entry["row"] == row for entry in shown)]
    figure, pairs = panels(shown, 1.2 + 0.38 * len(rows))
    noise = page.noise_of(table)
    for axis, entries in pairs:
        if noise is not None:
            width = 3 * noise / math.sqrt(entries[0]["seeds"])
            axis.axvspan(-width, width, color="#e4e4e4", zorder=0)
        axis.axvline(0, color="#808080", linewidth=0.8)
        for entry in entries:
            y = rows.index(entry["row"])
            axis.plot(entry["changes"], [y + 0.25] * len(entry["changes"]), "o", markersize=3.5, alpha=0.4,
                      color=colour(entry["row"]), markeredgewidth=0)
            interval = 0 if math.isnan(entry["interval"]) else entry["interval"]
            axis.errorbar(entry["change"], y, xerr=interval, fmt="D", markersize=5.5, capsize=3,
                          color=colour(entry["row"]), linewidth=1.6)
            if entry["row"] in page.LIMITS:
                axis.plot([page.LIMITS[entry["row"]]] * 2, [y - 0.38, y + 0.38], color="#c00000", linewidth=2.2)
        axis.set_xlabel("change of accuracy against exact, points")
        axis.grid(axis="x", color="#eeeeee")
        axis.set_axisbelow(True)
    pairs[0][0].set_yticks(range(len(rows)), rows)
    pairs[0][0].set_ylim(len(rows) - 0.5, -0.5)
    marks = [plt.Line2D([], [], marker="o", linestyle="", color="#606060", alpha=0.5, markersize=4, label="one seed"),
             plt.Line2D([], [], marker="D", color="#606060", markersize=5, label="mean, 95 % interval"),
             plt.Line2D([], [], color="#c00000", linewidth=2.2, label="bar"),
             plt.Rectangle((0, 0), 1, 1, color="#e4e4e4", label="noise of a shuffle (±3σ of a mean)")]
    put_legend(figure, marks, 4)
    return figure


def draw_traffic(table):
    rows = [row for row in train.ROWS if any(entry["row"] == row for entry in table)]
    figure, pairs = panels(table, 1.0 + 0.36 * len(rows))
    for axis, entries in pairs:
        for entry in entries:
            y = rows.index(entry["row"])
            axis.barh(y, entry["origin"], height=0.62, color=colour(entry["row"]), alpha=0.85)
            axis.plot([entry["distinct"]] * 2, [y - 0.4, y + 0.4], color="#000000", linewidth=1.8)
            axis.text(1.02, y, f"{entry['origin']:.2f}", va="center", transform=axis.get_yaxis_transform())
        axis.axvline(1, color="#808080", linewidth=0.8, linestyle="--")
        axis.set_xlim(0, 1.05)
        axis.set_xlabel("share of the data set, per epoch")
    pairs[0][0].set_yticks(range(len(rows)), rows)
    pairs[0][0].set_ylim(len(rows) - 0.5, -0.5)
    marks = [plt.Rectangle((0, 0), 1, 1, color="#606060", label="bytes read from the origin"),
             plt.Line2D([], [], color="#000000", linewidth=1.8, label="distinct samples read"),
             plt.Line2D([], [], color="#808080", linewidth=0.8, linestyle="--", label="without a cache")]
    put_legend(figure, marks, 3)
    return figure


def draw_curves(table, runs):
    figure, pairs = panels(table, 4.4)
    lowest = 100.0
    for axis, entries in pairs:
        for entry in entries:
            curves = [run["curve"] for run in runs if (run["data"], run["row"]) == (entry["data"], entry["row"])]
            mean = [sum(values) / len(values) for values in zip(*curves)]
            lowest = min(lowest, mean[len(mean) // 10])
            axis.plot(range(1, len(mean) + 1), mean, dash(entry["row"]), color=colour(entry["row"]), linewidth=1.4,
                      label=entry["row"])
        axis.set_xlabel("epoch")
        axis.grid(color="#eeeeee")
    pairs[0][0].set_ylabel("accuracy on test images, %, mean of seeds")
    pairs[0][0].set_ylim(bottom=lowest - 1)
    put_legend(figure, pairs[0][0].get_legend_handles_labels()[0], 4)
    return figure


def draw_times(runs, rows):
    """Accuracy over the seconds of training, one panel for each data set; the means of the seeds of a row."""
    names = [name for name in data.SETS if any(run["data"] == name for run in runs)]
    figure, axes = plt.subplots(1, len(names), figsize=(3.4 * max(2, len(names)), 4.4), squeeze=False, layout="constrained")
    for axis, name in zip(axes[0], names):
        starts = []
        for row in rows:
            found = [run for run in runs if (run["data"], run["row"]) == (name, row)]
            if not found:
                continue
            seconds, curve = ([statistics.mean(values) for values in zip(*(run[key] for run in found))]
                              for key in ("seconds", "curve"))
            starts.append(curve[len(curve) // 6])
            axis.plot(seconds, curve, dash(row, rows), color=colour(row), linewidth=1.4, label=row)
        axis.set_title(name)
        axis.set_ylim(bottom=min(starts) - 1)
        axis.set_xlim(left=0)
        axis.set_xlabel("seconds of training")
        axis.grid(color="#eeeeee")
    axes[0][0].set_ylabel("accuracy on test images, %")
    put_legend(figure, axes[0][0].get_legend_handles_labels()[0], 4)
    return figure


def draw_over_time(path, runs, rows):
    """Writes draw_times() beside `path`; returns [(file, title)]."""
    return save(path, [("seconds", "Accuracy over the seconds of training", lambda: draw_times(runs, rows))])


def draw(path, table, runs):
    """Writes the plots beside `path`; returns [(file, title)]."""
    return save(path, [("change", "Change of accuracy against exact, by contract", lambda: draw_changes(table)),
                       ("origin", "Bytes read from the origin per epoch, by contract", lambda: draw_traffic(table)),
                       ("epochs", "Accuracy after each epoch, by contract", lambda: draw_curves(table, runs))])


def save(path, figures):
    files = []
    with plt.rc_context(SETTINGS):
        for name, title, make in figures:
            figure = make()
            file = path.with_name(f"{path.stem}-{name}.svg")
            figure.savefig(file, metadata={"Date": None})
            plt.close(figure)
            files.append((file, title))
    return files
