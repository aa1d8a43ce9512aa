"""Run what is missing, then write every table and figure: `python -m experiments.report`."""

from contextlib import nullcontext
from pathlib import Path

from experiments.engine.command import Command
from experiments.engine.options import DEFAULTS, Common
from pgeom.frontend import command_line, output
from pgeom.frontend.errors import UsageError
from pgeom.frontend.names import choose_all
from pgeom.frontend.writing import write_text
from pgeom.losses.catalogue import GENERAL, LOSSES


def main(
    losses: tuple[str, ...] = (),
    out: Path = Path("results/report"),
    theory: bool = True,
    common: Common = DEFAULTS,
) -> None:
    """Reproduce the empirical section and set it beside what was published.

    Records are kept in the folders of the experiments, beside --out; what is there is not trained
    again.

    Args:
        losses: Names such as ce or ldam; all seventeen by default.
        out: The folder for tables, figures and index.html.
        theory: Whether to draw the theory figures too, by `python -m proofs_numeric`.
        common: Options of every command.
    """
    losses = choose_all("loss", losses, LOSSES)
    if not set(losses) & set(GENERAL):
        raise UsageError(f"--losses must have one of {', '.join(GENERAL)}")
    # here and not above: a mistake in the command line should not wait for them
    from experiments.report import gather, theory_figures

    command = Command(common, out)
    studies = gather.make_studies(common, losses)
    theory = theory and command.machine.is_primary
    with theory_figures.drawing(out) if theory else nullcontext() as drawing:
        gather.train(studies, out.parent, command)
        command.finish(lambda: show(gather.read(studies, out.parent), drawing, command))


def show(results, drawing, command: Command) -> list[Path]:
    """Write the tables, the figures and the page, all from records."""
    from experiments.report import conclusions, page, paper_figures, paper_tables, theory_figures

    command.console.print("writing tables and figures")
    written = paper_tables.write(results, command.out)
    figures = paper_figures.write(results, command.out)
    if drawing is not None:
        figures |= drawing.finish()
        if not set(theory_figures.CAPTIONS) <= set(figures):
            command.console.print(f"theory figures are missing; see {theory_figures.COMMAND}")
    findings, target = conclusions.sentences(results), command.out / "index.html"
    write_text(target, page.html(findings, written, figures))
    if command.json:
        print(paper_tables.as_json(results), file=output.results())
    for finding in findings:
        command.console.print(f"• {finding}")
    command.console.print(f"{len(written)} tables and {len(figures)} figures; open {target}")
    return [target]


if __name__ == "__main__":
    command_line.run(main, "experiments.report", example="--seeds 10")
