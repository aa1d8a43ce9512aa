"""The tables of images, of the estimator, and of the cost of many seeds."""

import pandas as pd

from experiments.show.tables import Grid
from experiments.speed import estimator
from experiments.speed.grids import describe_agreement
from experiments.speed.scale_model import Part, fit_host_loop, host_limit, predict
from experiments.speed.workshop import CHANNELS_FIRST, CHANNELS_LAST, CONTENDERS, OURS, spread

SEEDS, DEVICES = 1_000, (1, 2, 8)  # of the job on paper
HOUR = 3600


def images(rows: pd.DataFrame) -> Grid:
    """A convolutional network: medians over the laps."""
    ours = rows[rows["contender"] == OURS].set_index("repeat")["images_per_second"]
    lines = []
    for contender in (name for name in CONTENDERS if name in set(rows["contender"])):
        own = rows[rows["contender"] == contender].set_index("repeat")
        rate, least, most = spread(own["images_per_second"])
        faster, low, high = spread((ours / own["images_per_second"]).dropna())
        lines.append(
            [
                contender,
                f"{rate:,.0f} ({least:,.0f}–{most:,.0f})",
                "1" if contender == OURS else f"{faster:.2f} ({low:.2f}–{high:.2f})",
                f"{own['compiling'].iloc[0]:.1f}" if own["compiling"].iloc[0] else "–",
                f"{own['nll'].mean():.3f}",
            ]
        )
    header = ["Way", "Images per second ↑", "pgeom is faster by", "Compile, cold (s)", "Test NLL"]
    best = rows.groupby("contender")["images_per_second"].median()
    fastest = best[[CHANNELS_FIRST, CHANNELS_LAST]].idxmax()
    notes = [
        f"Fashion-MNIST, {rows['images'].iloc[0]:,} training images, {rows['epochs'].iloc[0]} "
        "epochs, one seed per core, validation after each; median over the laps, with the range",
        f"the fastest PyTorch here: {str(fastest).removeprefix('PyTorch, ')}",
        describe_agreement(rows),
    ]
    return Grid("a convolutional network", header, lines, set(), notes)


def fits(rows: pd.DataFrame) -> Grid:
    """The estimator beside scikit-learn's: medians over processes."""
    theirs, ours = estimator.WAYS
    header = ["Data", f"{theirs}, first fit (s)", f"{ours}, first (s) ↓", "Later by (s)"]
    header += [f"{theirs}, second (s)", f"{ours}, second (s) ↓", "Faster by ↑", "Accuracies"]
    lines = []
    for name, same in rows.groupby("dataset", sort=False):
        one = {way: same[same["way"] == word] for way, word in estimator.WAYS.items()}
        first, second = (
            {way: float(own[fit].median()) for way, own in one.items()}
            for fit in ("first", "second")
        )
        quotients = one[theirs]["second"].to_numpy() / one[ours]["second"].to_numpy()
        faster, low, high = spread(quotients)
        accuracies = (f"{own['accuracy'].median():.3f}" for own in one.values())
        lines.append(
            [
                f"{name}, {same['examples'].iloc[0]:,} × {same['features'].iloc[0]}",
                *(f"{first[way]:.2f}" for way in (theirs, ours)),
                f"{first[ours] - first[theirs]:.2f}",
                *(f"{second[way]:.2f}" for way in (theirs, ours)),
                f"{faster:.2f} ({low:.2f}–{high:.2f})",
                ", ".join(accuracies),
            ]
        )
    notes = [
        f"{rows['epochs'].iloc[0]} epochs of batches of {estimator.BATCH}, two hidden layers of "
        "the same width; medians over processes of their own, with the range of the ratio",
        "the first fit of pgeom compiles, and nothing is cached between processes; NumPy has one "
        "thread, with which MLPClassifier is fastest",
    ]
    return Grid("the scikit-learn estimator", header, lines, set(), notes)


def scale(rows: pd.DataFrame) -> Grid:
    """What all cells cost with a thousand seeds, on paper."""
    measured = rows[rows["kind"] == "part"].to_dict("records")
    parts = [Part(**{name: row[name] for name in Part._fields}) for row in measured]
    mesh = rows[rows["kind"] == "mesh"]
    loop = fit_host_loop(mesh["devices"].tolist(), mesh["call"].tolist())
    lines = []
    for devices in DEVICES:
        cost = predict(parts, loop, SEEDS, devices)
        lines.append(
            [
                str(devices),
                f"{cost.total / HOUR:.2f}",
                f"{cost.compiling:.0f}",
                f"{100 * cost.host / cost.total:.0f}%",
                f"{1e3 * loop.call(devices) / devices:.2f}",
            ]
        )
    cells, losses = sum(int(part.cells) for part in parts), int(parts[0].losses)
    header = [
        "Devices",
        "Hours ↓",
        "Compile (s)",
        "The host is busy",
        "Host loop per member (ms) ↓",
    ]
    title = f"{losses} losses × {SEEDS:,} seeds × {cells} cells, on paper"
    return Grid(title, header, lines, set(), _scale_notes(rows, parts, loop))


def _scale_notes(rows: pd.DataFrame, parts: list[Part], loop) -> list[str]:
    mesh, check = rows[rows["kind"] == "mesh"], rows[rows["kind"] == "check"].iloc[0]
    most = host_limit(parts, loop)
    limit = "with no number of devices" if most is None else f"from {most} devices on"
    calls = zip(mesh["devices"].astype(int), mesh["call"], strict=True)
    each = ", ".join(f"{1e3 * call / count:.2f} on {count}" for count, call in calls)
    shares = "; ".join(
        f"{part.dataset}: {part.group:.2f} s per group, {1e3 * part.host:.0f} ms of the host per "
        f"member, {part.calls:.0f} calls"
        for part in parts
    )
    ratio = check["seconds"] / check["predicted"]
    return [
        f"checked by {check['runs']:,.0f} runs, {check['seeds']:.0f} seeds of every cell, on "
        f"{check['devices']:.0f} devices: {check['seconds']:.0f} s, {ratio:.2f} times the "
        f"{check['predicted']:.0f} s of the model",
        f"devices wait for the host {limit}; a device is a core of this machine",
        f"measured parts: {shares}",
        f"the host loop per epoch and member on a mesh of simulated devices, in ms: {each}",
    ]
