"""The figure of the speed study."""

from pathlib import Path

import pandas as pd
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from experiments.show.style import BLUE, figure, save

AXES = {
    "seeds": "seeds",
    "losses": "losses in the program",
    "devices": "devices (CPU cores)",
    "width": "hidden width",
}


def growth(rows: pd.DataFrame, path: Path) -> list[Path]:
    """Cost of a run, and how fast it computes, against the size of the job."""
    size = (9.5, 3.6)
    with figure(2, len(AXES), size, sharex="col", sharey="row") as (drawing, axes):
        for (top, bottom), (what, label) in zip(axes.T, AXES.items(), strict=True):
            own = (
                rows[rows["what"] == what]
                .groupby("value", as_index=False)
                .median(numeric_only=True)
            )
            for axis, field in ((top, "seconds_per_run"), (bottom, "gflops")):
                axis.plot(own["value"], own[field], "o-", color=BLUE, markersize=4)
            top.set_yscale("log")
            top.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            top.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            top.yaxis.set_minor_locator(NullLocator())
            bottom.set_ylim(bottom=0, top=1.1 * rows["gflops"].max())
            bottom.set_xscale("log")
            bottom.set_xticks(own["value"], [str(value) for value in own["value"]])
            bottom.minorticks_off()
            bottom.set_xlabel(label)
        axes[0, 0].set_ylabel("seconds per run\n(lower is better)")
        axes[1, 0].set_ylabel("GFLOP/s\n(higher is better)")
        return save(drawing, path)
