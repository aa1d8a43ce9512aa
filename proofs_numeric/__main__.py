"""Check every claim of the paper numerically: `python -m proofs_numeric`.

Exit code 0 if all hold, 1 if any fails, 2 for bad input.
"""

import json as json_format
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from experiments.shell import command_line, loading
from experiments.shell.errors import UsageError
from experiments.shell.files import require_writable, write_text
from proofs_numeric import runner, table

GENERATOR_CLASSES = (2, 3, 10)
COLUMNS = 100  # at most, of what is printed


def main(
    only: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME…")] = (),
    classes: Annotated[tuple[int, ...], tyro.conf.arg(metavar="K…")] = (),
    generator: Annotated[str | None, tyro.conf.arg(metavar="SOURCE:FUNCTION")] = None,
    figures: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    certify: tyro.conf.FlagCreatePairsOff[bool] = False,
    verbose: tyro.conf.FlagCreatePairsOff[bool] = False,
    json: tyro.conf.FlagCreatePairsOff[bool] = False,
) -> int:
    """Check every claim of the paper: search for violations, show where bounds are attained.

    Exits with 0 if all hold, 1 if any fails, 2 for bad input.

    Args:
      only: Claims to check, all by default: regret, curvature, loss_range, gradients,
        hessian_lipschitz, margin, displacement, improper, graph_weights, contamination, numerics,
        canonical_links.
      classes: Numbers of classes to check them for. By default 2, 3 and 10; also 100 for the cheap
        claims (margin, improper, contamination), and for CAPM those of every dataset. For
        --generator 2, 3 and 10.
      generator: Check a generator of your own instead, a function F(p[K]) -> scalar, named as
        module:function or path/to/file.py:function.
      figures: Also draw the paper's theory figures into this folder, as PNG, PDF and SVG. To draw
        without checking: python -m proofs_numeric.proof_figures DIR.
      out: Also write everything to this folder, as proofs.md and proofs.json; with --certify, the
        certificates, too, for python -m proofs_numeric.checker.
      certify: Prove convexity and curvature of the paper's generators, and its ranges, or those of
        --generator; search only what is neither proved nor disproved. Needs the extra `certify`.
      verbose: Print where the worst case of each claim was found, too.
      json: Print JSON on standard output, and nothing else there.
    """
    progress = command_line.make_console(stderr=True)
    own = generator is not None
    if only and (own or certify):
        option = "--certify" if certify else "--generator"
        raise UsageError(f"--only: has no meaning with {option}, which has claims of its own")
    runner.check_classes(classes)
    jobs = [] if own or certify else runner.plan_jobs(only, classes)
    for folder, option in ((figures, "--figures"), (out, "--out")):
        if folder is not None:
            require_writable(folder, option=option)
    if certify:
        return _certify(generator, classes or GENERATOR_CLASSES, progress, json, out)
    runner.configure()
    if generator is not None:
        results, notes = _check_generator(generator, classes or GENERATOR_CLASSES, progress)
    else:
        results, notes = runner.run(jobs, progress), []
    drawn = []
    if figures is not None:
        from proofs_numeric import theory_figures  # matplotlib only where it is needed

        with progress.status("figures"):
            drawn = [f"wrote {path}" for path in theory_figures.draw(figures)]
    text = json_format.dumps(table.to_json(results) | {"notes": notes}, ensure_ascii=False)
    if out is not None:
        write_text(out / "proofs.json", f"{text}\n")
        write_text(out / "proofs.md", table.to_markdown(results, notes))
    if json:
        print(text, file=command_line.results())
    else:
        console = command_line.make_console()
        console.width = min(console.width, COLUMNS)
        console.print(table.to_rich(results, verbose=verbose))
        for line in ("", *notes, *drawn, table.summary(results)):
            console.print(line)
    return 0 if table.all_hold(results) else 1


def _check_generator(
    spec: str, classes: tuple[int, ...], progress: Console
) -> tuple[table.Results, list[str]]:
    """The checks of a user's generator by number of classes, and notes about those that fail."""
    from proofs_numeric import user_generator

    F, results, notes = loading.load(spec, option="--generator"), {}, []
    with progress.status(Text(spec)):
        for K in classes:
            results[f"{spec}, K = {K}"], failures = user_generator.checks(F, K, spec)
            notes += failures
    return results, notes


def _certify(
    spec: str | None, classes: tuple[int, ...], progress: Console, json: bool, out: Path | None
) -> int:
    """Certify the paper's generators and ranges, or a user's generator; 1 if one is disproved."""
    from proofs_numeric import certified

    own = {spec: loading.load(spec, option="--generator")} if spec is not None else None
    rows: certified.Rows = []
    for K in classes:
        for name, F in (own or certified.paper_generators(K)).items():
            with progress.status(Text(f"{name}, K = {K}")):
                rows.append(certified.prove(name, F, K))
    for K in () if own else classes:
        for name, (function, gap) in certified.paper_ranges(K).items():
            with progress.status(Text(f"{name}, K = {K}")):
                rows.append(certified.prove_range(name, function, K, gap))
    if out is not None:
        certified.write(rows, out)
    if json:
        everything = certified.to_json(rows)
        print(json_format.dumps(everything, ensure_ascii=False), file=command_line.results())
    else:
        console = command_line.make_console()
        for columns, cells in certified.tables(rows):
            grid = Table(*columns)
            for line in cells:
                grid.add_row(*line)
            console.print(grid)
        console.print(certified.summary(rows))
    return 1 if any("disproved" in row[:4] for row in rows) else 0


if __name__ == "__main__":
    command_line.run(
        main,
        "proofs_numeric",
        example="--only regret margin --classes 3 10",
        on_interrupt="interrupted: rerun to check again",
    )
