"""Run what is missing, then write every table and figure: `python -m experiments.report`."""

import time
from contextlib import nullcontext
from pathlib import Path

from experiments import cli
from experiments.protocol import UsageError, chosen
from pgeom.losses import catalogue


def main(
    losses: tuple[str, ...] = (),
    out: Path = Path("results/report"),
    theory: bool = True,
    common: cli.Common = cli.DEFAULTS,
) -> None:
    """Reproduce the empirical section and set it beside what was published.

    Records are kept in the folders of the experiments, beside --out; what is there is not trained
    again.

    Args:
        losses: Names such as ce or ldam; all seventeen if none are given.
        out: The folder for tables, figures and index.html.
        theory: Whether to draw the theory figures too, by `python -m proofs_numeric`.
        common: Options of every command.
    """
    losses = chosen("loss", losses, tuple(catalogue.LOSSES))
    if not set(losses) & set(catalogue.GENERAL):
        raise UsageError(f"--losses must have one of {', '.join(catalogue.GENERAL)}")
    cli.refuse_distributed(common, "experiments.report")
    command = cli.begin(common, out)
    # here and not above: a mistake in the command line should not wait for them
    from experiments.report import gather, page, paper_figures, paper_tables, theory_figures

    with theory_figures.drawing(out) if theory else nullcontext() as drawing:
        results = gather.gather(out.parent, losses, command)
        command.console.print("writing tables and figures", highlight=False)
        written = paper_tables.write(results, out)
        figures = paper_figures.write(results, out)
        figures |= theory_figures.finish(drawing, out) if drawing else {}
    if theory and not set(theory_figures.CAPTIONS) <= set(figures):
        command.console.print(f"theory figures are missing; see {theory_figures.COMMAND}")
    target = page.write(results, written, figures, out)
    if command.json:
        print(paper_tables.as_json(results))
    spent = results.spent
    command.console.print(
        f"{spent.runs} runs trained; compile {spent.compiling:.1f} s, training "
        f"{spent.training:.1f} s, all in all {time.perf_counter() - command.begun:.1f} s; "
        f"{len(written)} tables and {len(figures)} figures in {out}; open {target}",
        soft_wrap=True,
        highlight=False,
    )


if __name__ == "__main__":
    cli.start(main, "experiments.report")
