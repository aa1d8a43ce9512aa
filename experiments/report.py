"""Run what is missing, then write every table and figure: `python -m experiments.report`."""

from contextlib import nullcontext
from pathlib import Path

from experiments.engine.command import Command
from experiments.engine.options import DEFAULTS, Common
from experiments.shell import command_line
from experiments.shell.errors import UsageError
from experiments.shell.files import write_text
from experiments.shell.names import choose_all
from pgeom.losses.catalogue import GENERAL, LOSSES, SYNONYMS
from pgeom.messages import count

BRIEF = {"decisions": (0, 1, 2, 3, 5, 6), "claims": (1, 0, 2)}  # the columns that are printed
POWERED = 20  # seeds, from which comparisons of all losses can be more than descriptive


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
    given = command_line.as_typed()
    losses = choose_all("loss", losses, LOSSES, SYNONYMS)
    if not set(losses) & set(GENERAL):
        raise UsageError(f"--losses must have one of {', '.join(GENERAL)}")
    # here and not above: a mistake in the command line should not wait for them
    from experiments.show import records as gather, theory as proofs

    command = Command(common, out)
    studies = gather.make_studies(common, losses)
    theory = theory and command.is_primary
    with proofs.proving(out) if theory else nullcontext() as proving:
        gather.train(studies, out.parent, command)
        command.finish(lambda: show(gather.read(studies, out.parent), proving, command, given))


def show(results, proving, command: Command, given: str) -> list[Path]:
    """Write the tables, the figures and the page, all from records, and print the findings."""
    from experiments.show import page, paper_figures, paper_tables, theory
    from experiments.show.item_files import write_runs
    from experiments.show.statements import FINDINGS

    command.console.print("writing tables and figures")
    write_runs(results, command.out)
    tables = paper_tables.write(results, FINDINGS, command.out)
    figures = paper_figures.write(results, FINDINGS, command.out)
    if proving is not None:
        drawn, claims = proving.finish()
        figures, tables = figures | drawn, tables | claims
        if not set(theory.FIGURES) <= set(drawn) or not claims:
            again = theory.command(command.out)
            command.console.print(f"the theory is incomplete; see {again}", soft_wrap=True)
    contents = describe(results, tables, figures, given)
    target = write_text(command.out / "index.html", page.html(contents))
    if command.json:
        print(paper_tables.as_json(results), file=command_line.results())
    else:
        print_findings(contents, command)
    command.console.print(f"{len(tables)} tables and {len(figures)} figures; open {target}")
    return [target]


def describe(results, tables, figures, given: str):
    """What the page shows, and what is said about it."""
    from experiments.show.answer_page import headlines
    from experiments.show.page import Contents
    from experiments.show.provenance import bibtex, facts

    cells = results.runs.groupby(["dataset", "regime"]).ngroups
    lead = (
        f"{len(results.legend)} losses for classification in {cells} cells of small datasets, with "
        f"{count(results.seeds, 'matched seed')} each: a reproduction of a paper on structured "
        f"proper losses, and what its numbers can and cannot tell."
    )
    if results.seeds < POWERED:
        lead += (
            " So few seeds describe and prove nothing; with --seeds 100 the same command gives "
            "powered comparisons."
        )
    short = headlines(results.evidence) if results.evidence else []
    return Contents(lead, short, tables, figures, facts(results, given), bibtex(results))


def print_findings(contents, command: Command) -> None:
    """The decisions, the claims, and every finding of the page, in its order."""
    from experiments.show.outline import SECTIONS

    for label, columns in BRIEF.items():
        for grid in contents.tables[label].grids:
            command.console.print(f"\n{grid.title}", style="bold")
            for row in grid.rows:
                command.console.print("; ".join(row[k] for k in columns), markup=False)
    shown = {f"tab:{label}": one for label, one in contents.tables.items()}
    shown |= {f"fig:{label}": one for label, one in contents.figures.items()}
    texts = [*contents.headlines]
    for section in SECTIONS:
        texts += [shown[name].finding for name in section.items if name in shown]
    command.console.print("")
    for text in dict.fromkeys(filter(None, texts)):
        command.console.print(f"• {text}", markup=False)


if __name__ == "__main__":
    command_line.run(main, "experiments.report", example="--seeds 10")
