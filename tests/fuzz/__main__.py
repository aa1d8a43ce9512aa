"""Try every target on so many random examples: `python -m tests.fuzz --examples 20000`."""

import argparse
import sys
import time

from hypothesis import HealthCheck, given, seed, settings

from tests.fuzz import commands, evaluation, losses, scores

TARGETS = {
    "losses": losses,
    "scores": scores,
    "evaluation": evaluation,
    "commands": commands,
}
SHARES = {"losses": 0.3, "scores": 0.3, "evaluation": 0.3, "commands": 0.1}


def run(check, inputs, examples: int, number: int) -> tuple[int, Exception | None]:
    """How many examples were tried, and what the smallest one that fails raises."""
    tried = 0

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(inputs)
    def attempt(example):
        nonlocal tried
        tried += 1
        check(example)

    try:
        attempt()
    except Exception as error:  # whatever it is, it is a finding
        return tried, error
    return tried, None


def main(arguments: list[str] | None = None) -> int:
    """The command; 1 if anything fails."""
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__)
    parser.add_argument("--examples", type=int, default=20_000, help="in all (20000)")
    parser.add_argument("--only", choices=TARGETS, help="one target alone")
    parser.add_argument("--seed", type=int, default=0, help="of the examples (0)")
    options = parser.parse_args(arguments)
    failures, total = 0, 0
    for name in [options.only] if options.only else TARGETS:
        share = 1.0 if options.only else SHARES[name]
        begun, target = time.monotonic(), TARGETS[name]
        count = max(1, round(options.examples * share))
        tried, error = run(target.check, target.inputs(), count, options.seed)
        seconds = time.monotonic() - begun
        failures, total = failures + (error is not None), total + tried
        print(f"{name:<12}{tried:>8} examples  {seconds:8.1f} s  {_verdict(error)}", flush=True)
    print(f"{'all':<12}{total:>8} examples, {failures} targets failed")
    return 1 if failures else 0


def _verdict(error: Exception | None) -> str:
    if error is None:
        return "passed"
    found = error.exceptions if isinstance(error, ExceptionGroup) else [error]
    return "\n".join(["FAILED", *map(_describe, found)])


def _describe(error: BaseException) -> str:
    """The error, and the example that raised it."""
    return "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])


if __name__ == "__main__":
    sys.exit(main())
