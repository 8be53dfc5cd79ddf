"""Commands that test the suite itself."""

import pathlib
from collections.abc import Sequence
from typing import Any

import click

from conformance import commands
from conformance.cli import measuring
from conformance.cli.base import FORMAT, SEED, TRIALS, finish, notes, out_folder, out_path, resumes
from conformance.engine.benches import Choice, Means
from conformance.model.errors import UserError
from conformance.model.networks.proxy import PEPSAL, SPLITTER
from conformance.model.trials.trial import KERNEL_STACK
from conformance.reporting import text

#: first seed of runs that count false alarms; runs from 1001 to 1400 were made while zones and statistics still changed
_FALSE_ALARMS = 1401


@click.command()
@click.argument("ids", nargs=-1)
@click.option(
    "--false-alarms",
    "n",
    type=click.IntRange(1),
    help="Instead of testing mutants, make this many whole runs of the references.",
)
@click.option("--profile", help="Profile of the zones that judge (default: atc25 for TCP, packets for UDP).")
@measuring.trials(5)
@click.option("--max-trials", default=20, show_default=True, type=TRIALS, help="Most trials of a cell that is unclear.")
@click.option(
    "--first-seed",
    type=SEED,
    help=f"Seed of the first trial (default: 101, as recorded; with --false-alarms {_FALSE_ALARMS}, as recorded).",
)
@click.option("--zone", "zones", multiple=True, type=click.Path(), help="A further zone file to judge by (repeatable).")
@click.option("--grid", default="10mbps", show_default=True, help="Which cells to judge by, if a zone covers a grid.")
@click.option("--whole", is_flag=True, help="Measure every cell, even after one has detected the mutant.")
@click.option(
    "--record",
    is_flag=True,
    help="Keep the score for `zones check`; with --false-alarms, keep each run's result, so that none is repeated.",
)
@click.option("--results", default="results/mutants.jsonl", show_default=True, help="Results file to add to.")
@measuring.WORKERS
@out_path("Also write the result to this file, as Markdown.")
@FORMAT
def mutants(
    ids: Sequence[str], n: int | None, first_seed: int | None, record: bool, target: pathlib.Path | None, form: str,
    **options: Any,
) -> None:  # fmt: skip
    """Test whether zones detect mutants.

    IDS are mutants (default: all). With --false-alarms, test instead that the references are not rejected.

    Exit statuses: 0 if at least 90 % of the mutants are detected, or at most 1 run in 100 has a false alarm; 1 if not;
    3 after errors. --record needs all mutants, or the references, and the zones that ship, so leave out IDS, --zone
    and --grid.
    """
    resumes()
    from conformance.catalogue import mutant_record

    if n and (ids or target or options["whole"]):
        raise UserError("--false-alarms measures no mutants", "give it without IDS, --whole and --out")
    if record and options["zones"]:
        raise UserError("--record keeps only verdicts of the zones that ship", "give it without --zone")
    if record and options["grid"] != mutant_record.GRID:
        raise UserError(f"--record keeps only verdicts at {mutant_record.GRID}", "give it without --grid")
    if record and not n and options["profile"]:
        raise UserError("--record keeps the verdicts of all zones, for TCP and for UDP", "give it without --profile")
    chosen = commands.mutants.MutantOptions(first_seed=first_seed or (_FALSE_ALARMS if n else 101), **options)
    if n:
        finish(commands.false_alarms.compute(n, chosen, record, notes(form)), form, text.scores.show_counted)
    scored = commands.mutants.compute(ids, chosen, record, notes(form))
    if target:
        text.scores.write(scored.findings, target)
    finish(scored, form, text.scores.show_scored)


@click.group()
def bugs() -> None:
    """Run bugs that stacks really had, to find out which the suite catches (docs/bugs.md)."""


@bugs.command("run")
@click.argument("ids", nargs=-1)
@click.option(
    "--source", "trees", multiple=True, metavar="NAME=PATH",
    help="A tree that you built, by the name that bugs/entries has for it (repeatable).",
)  # fmt: skip
@click.option("--budget", default="5m", show_default=True, help="Of each comparison, as `compare` takes it.")
@click.option("--again", is_flag=True, help="Also run what the record has of the same builds.")
@click.option(
    "--until-named", is_flag=True, help="End an entry with the first command that names its mechanism, unless a sham."
)
@click.option("--clause", "clauses", multiple=True, help="Judge by this clause only (repeatable); nothing is recorded.")
@click.option("--grid", default="smoke", show_default=True, help="Cells to compare, and to judge by zones.")
@measuring.with_means(results="results/bugs.jsonl")
@FORMAT
def bugs_run(means: Means, ids: Sequence[str], trees: Sequence[str], budget: str, form: str, **options: Any) -> None:
    """Run the bugs with these IDS (default: all whose builds are there), and record what told the builds apart.

    Exit statuses: 0 if each was caught and no sham moved; 1 if not; 4 if none was run.
    """
    from conformance.lab import sources

    named = dict(tree.split("=", 1) for tree in sources.absolute(trees))
    limit_s = commands.gate_budget.seconds(budget)
    command_options = commands.bugs.BugsOptions(trees=named, budget_s=limit_s, **options)
    finish(commands.bugs.run(ids, command_options, means), form, text.dev.show_bugs)


def _goals(names: Sequence[str]) -> tuple[str, ...]:
    from conformance.model.search.goals import GOALS

    for name in names:
        if name not in GOALS:
            raise UserError(f"there is no goal {name!r}", f"choose of {', '.join(GOALS)}")
    return tuple(dict.fromkeys(names))


@click.command()
@click.argument("stack")
@click.option("--algorithm", default="cubic", show_default=True, help="Congestion control to ask both stacks for.")
@measuring.SOURCE
@click.option(
    "--against", help="Stack that claims the same, to compare with; either may be the one that is wrong"
    " (default: linux-tcp, the reference).",
)  # fmt: skip
@click.option(
    "--goal", "goals", multiple=True, callback=lambda _, __, names: _goals(names), metavar="GOAL",
    help="What to look for: throughput, standstill, loss, failure or disagreement (repeatable; default: all, but"
    " disagreement only with --against).",
)  # fmt: skip
@click.option("--budget", help="Wall time, of which two fifths are for shrinking and repeats (default: 1h).")
@click.option("--tries", type=click.IntRange(1), help="End the search after so many scenarios (default: no limit).")
@click.option("--seed", default=1, show_default=True, type=SEED, help="Seed of the sequence of scenarios.")
@measuring.with_means(results="results/search.jsonl")
@out_folder("search")
@FORMAT
def search(
    means: Means, stack: str, source: tuple[str, ...], against: str | None, goals: tuple[str, ...], budget: str | None,
    tries: int | None, form: str, **options: Any,
) -> None:  # fmt: skip
    """Look for networks and applications in which STACK does much worse than the reference, or another stack.

    What it finds is shrunk, repeated with fresh seeds, and written to --out as scenarios that `trace` and `why` take.
    Exit statuses: 0 if it finds nothing; 1 if it does.
    """
    from conformance.model.search.goals import GOALS

    usual = commands.search.AGAINST_REFERENCE if against is None else tuple(GOALS)
    limit_s = commands.gate_budget.seconds(budget or (None if tries else "1h"))
    command_options = commands.search.SearchOptions(
        against=against or KERNEL_STACK, goals=goals or usual, budget_s=limit_s, tries=tries, **options
    )
    searched = commands.search.run(Choice(stack=stack, source=source), command_options, means)
    finish(searched, form, text.dev.show_searched)


@click.command()
@click.argument("stacks", nargs=-1)
@measuring.SOURCE
@click.option("--algorithm", "algorithms", multiple=True, help="Measure this one only (repeatable).")
@measuring.with_means(results="results/record.jsonl")
@FORMAT
def record(means: Means, stacks: Sequence[str], form: str, **options: Any) -> None:
    """Measure what registries have released of STACKS since, and add it to reports/published/history.json.

    By default, of all stacks in that history; `conformance report --history` draws it. With --source, measure that
    version or tree of one stack instead. Exit statuses: 0; 4 if a release was not measured.
    """
    finish(commands.record.run(stacks, commands.record.RecordOptions(**options), means), form, text.dev.show_recorded)


@click.group("proxy")
def dev_proxy() -> None:
    """Test a connection-splitting proxy (docs/proxy.md)."""


@dev_proxy.command("check")
@click.option(
    "--proxy", "name", type=click.Choice([SPLITTER, PEPSAL]), default=None,
    help="Proxy to try  [default: the suite's own, and pepsal if it is on PATH]",
)  # fmt: skip
@FORMAT
def proxy_check(name: str | None, form: str) -> None:
    """Kill and restart a proxy, take its links down, and do the same end to end.

    Needs no guest and no root: it runs in network namespaces of an unprivileged user, for about a minute.
    """
    finish(commands.proxy_check.compute(name), form, text.dev.show_proxies)


@click.group("document")
def dev_document() -> None:
    """Maintain the adapter `document`, which is the BBR draft as a stack (docs/bbr-draft.md)."""


@dev_document.command("check")
@click.argument("draft", metavar="TEXT", type=click.Path(path_type=pathlib.Path))
@click.option("--keep", "version", help="Keep digests of TEXT as those of this version, once the adapter follows it.")
@FORMAT
def document_check(draft: pathlib.Path, version: str | None, form: str) -> None:
    """Name the sections and the pseudocode that differ in TEXT, and what of the adapter cites them.

    TEXT is the draft as rendered, such as draft-ietf-ccwg-bbr-06.txt. The exit status is 1 if anything differs.
    """
    checked = commands.document_check.compute(draft)
    kept = [] if version is None else [f"written: {commands.document_check.keep(draft, version)}"]
    finish(checked, form, text.dev.show_draft, kept)


@dev_document.command("play")
@click.argument("options", nargs=-1)
@click.option("--grid", default="10mbps", show_default=True, help="Which cells, of the profile packets.")
@click.option("--deviation", "deviations", multiple=True, help="A fault to switch on (repeatable; deviations.txt).")
@click.option("--trials", default=20, show_default=True, type=click.IntRange(1, 10_000), help="Plays of each cell.")
@click.option(
    "--results", multiple=True, type=click.Path(path_type=pathlib.Path), help="Show these results of guests beside."
)
@FORMAT
def document_play(
    options: Sequence[str], grid: str, deviations: Sequence[str], trials: int, results: Sequence[pathlib.Path],
    form: str,
) -> None:  # fmt: skip
    """Play the same controller over modelled paths, in milliseconds and without a guest.

    OPTIONS are KEY=VALUE of `document play`, such as queue=bdp:4 or drop=3:4:1:50.
    """
    finish(commands.document_play.compute(grid, deviations, trials, results, options), form, text.dev.show_played)


DEV_COMMANDS = (mutants, bugs, search, record, dev_proxy, dev_document)
