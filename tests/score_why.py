"""How often does `conformance why` name what is wrong? Over the mutants, whose labels say it (mutants/).

    python tests/score_why.py [--trials 3] [--results results/why-mutants.jsonl] [--record] [IDS ...]

Each mutant is traced as `conformance why` does it, and compared with the reference that it claims to be. What was read
of its traces is kept in the results file: what is there, read by the same code on the same kernel, is not traced again.
With --record, it is kept in mutants/why.json, too: from there the score is made anew without a guest. What was read of
the references of BBRv2 and BBRv3 is then kept in zones/features.json.

    python tests/score_why.py --changes [--results results/clauses.jsonl] [IDS ...]

scores what `why --changes` adds, over the mutants of all files whose label one of its features can give. Its trials are
those of clauses with seed 1001, so that a results file of `conformance clause run` holds some of them.
"""

import concurrent.futures
import dataclasses
import json
import pathlib
import threading

import click
import rich.console

from conformance.catalogue import recorded_features
from conformance.commands import mutants, tracing, why_changes
from conformance.engine import benches, runs
from conformance.model import digest, seeds
from conformance.model.clauses import changes
from conformance.model.diagnosis import ranking as suspects
from conformance.model.diagnosis.feature_table import CELLS, FEATURES, PROFILE, label_of
from conformance.model.studies.mutants import Mutant, choose
from conformance.reporting.text.progress import ConsoleNotes
from conformance.support import files, paths

RECORD = mutants.folder() / "why.json"
#: what stands in the place of references whose kernels users have to build themselves (recorded_features.py)
REFERENCES = paths.data("zones", "features.json")
OWN_KERNELS = ("bbrv2", "bbrv3")
_SUITE = paths.PACKAGE
#: what a reading depends on, besides what is traced
_CODE = ("commands/tracing.py", "commands/trace.py", "model/diagnosis/flow.py", "model/diagnosis/features.py")
_NUMBERS, _DIGITS = ("value", "low", "high", "spread"), 6


class Readings:
    """Readings of schemes by feature, from the results file, or traced now and added to it."""

    def __init__(self, path, seeds):
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text().splitlines() if path.exists() else ()
        self._known = {line["key"]: line for line in map(json.loads, lines)}
        self._path, self._seeds, self._lock = path, seeds, threading.Lock()

    def of(self, name, bench, algorithm, claimed):
        """A row() of an algorithm that claims to be another. Raises UserError."""
        scheme = bench.scheme(algorithm)
        code = [(_SUITE / file).read_text() for file in _CODE]
        how = [repr(CELLS), PROFILE, [[f.id, f.mean, f.least, f.of_kept] for f in FEATURES]]
        plan = {cell: list(of) for cell, of in tracing.plan(claimed, self._seeds).items()}
        key = digest.of_value([algorithm, scheme.kernel_digest, scheme.stack_digest, plan, code, how])
        if key not in self._known:
            found = tracing.traced(bench, algorithm, plan)
            line = {"key": key, **row(name, suspects.readings(found.flows), found)}
            with self._lock, open(self._path, "a") as out:
                out.write(json.dumps(line) + "\n")
            self._known[key] = line
        return {item: self._known[key][item] for item in ("name", "problems", "readings")}


def row(name, read, found):
    """What is kept of a Traced and of the {Feature: Reading} of it, as JSON; of Readings, what suspects rest on."""
    rounded = {
        feature.id: {"n": reading.n, **{of: float(f"{getattr(reading, of):.{_DIGITS}g}") for of in _NUMBERS}}
        for feature, reading in read.items()
    }
    return {
        "name": name,
        "problems": found.problems + ([found.unsupported] if found.unsupported else []),
        "readings": rounded,
    }


def references_text(rows, ids):
    """The text of REFERENCES: of {name: row}, the readings of OWN_KERNELS; `ids`: of the schemes that were traced."""
    kept = {name: {"scheme": ids[name], "readings": rows[name]["readings"]} for name in OWN_KERNELS}
    return json.dumps({"schema": "recorded-features/1", "references": kept}, indent=1) + "\n"


def readings(row):
    """{Feature: Reading} of a row()."""
    return recorded_features.readings(row["readings"])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Score:
    """What came of one mutant. `looked`: whether anything was read of it; `problems`: of cells that say nothing."""

    mutant: Mutant
    suspects: list
    looked: bool
    problems: list

    @property
    def rank(self):
        """1 where the top suspect is the right one; None where none of them is."""
        labels = [suspect.label for suspect in self.suspects]
        return labels.index(self.mutant.suspect) + 1 if self.mutant.suspect in labels else None


def score(mutant, rows):
    """The Score of a mutant by its row and that of the reference that it claims to be, of {name: row}."""
    found = suspects.suspects(mutant.algorithm, readings(rows[mutant.id]), readings(rows[mutant.algorithm]))
    row = rows[mutant.id]
    return Score(mutant=mutant, suspects=found, looked=bool(row["readings"]), problems=row["problems"])


def recorded_rows():
    """{name: row} of the mutants and references in the record."""
    return {row["name"]: row for row in json.loads(RECORD.read_text(encoding="utf-8"))}


def recorded():
    """[Score] of the mutants in the record."""
    rows = recorded_rows()
    return [score(mutant, rows) for mutant in mutants.corpus() if mutant.id in rows]


#: {heading in the table: the algorithms whose mutants are counted together}
GROUPS = {"CUBIC, Reno and BBRv1": ("cubic", "reno", "bbrv1"), "BBRv2 and BBRv3": ("bbrv2", "bbrv3")}


def counts(scores):
    """A sentence: how many are right, of scores."""
    looked = [score for score in scores if score.looked]
    right = [sum(score.rank is not None and score.rank <= most for score in looked) for most in (1, 2)]
    shares = [f"{count} ({count / max(len(looked), 1):.0%})" for count in right]
    without, errors = sum(not score.suspects for score in looked), len(scores) - len(looked)
    return (
        f"{len(looked)} mutants: the top suspect is the right one of {shares[0]}, one of the top two of {shares[1]};"
        f" {without} without a suspect; {errors} errors."
    )


def table(scores):
    """Markdown: the counts of each of GROUPS, and a row for each mutant."""
    groups = {name: [s for s in scores if s.mutant.algorithm in algorithms] for name, algorithms in GROUPS.items()}
    rows = [
        *(f"- {name}: {counts(own)}" for name, own in groups.items() if own),
        "",
        "| mutant | is wrong | rank | suspects, with their weights | evidence of the first |",
        "|---|---|---|---|---|",
    ]
    for score in scores:
        found = ", ".join(f"{suspect.label} {suspect.weight:.1f}" for suspect in score.suspects)
        words = score.suspects[0].evidence[0].sentence if score.suspects else ""
        words += f" (not looked at: {'; '.join(score.problems)})" if score.problems else ""
        rows.append(f"| {score.mutant.id} | {score.mutant.suspect} | {score.rank or '-'} | {found} | {words} |")
    return "\n".join(rows) + "\n"


#: files of mutants, among which are those that a network or an application that changes should show
CORPORA = ("mutants.json", "clauses.json", "changes.json")


def given(algorithm):
    """The labels that features of networks that change can give of an algorithm."""
    return {label_of(feature, algorithm) for feature in changes.FEATURES} - {None}


def changing():
    """The mutants whose label one of those features can give; of others, changes say nothing by design."""
    every = [mutant for file in CORPORA for mutant in mutants.corpus(file)]
    return [mutant for mutant in every if mutant.suspect in given(mutant.algorithm)]


def score_changes(ids, results):
    """[Score] of changing(), by networks that change alone."""
    console = rich.console.Console(stderr=True)
    usual, rows = benches.find(), {}

    def read(bench, algorithm):
        found = why_changes.seen(
            bench, algorithm, range(seeds.JUDGED, seeds.JUDGED + 1), results, None, ConsoleNotes(console)
        )
        return {"readings": changes.readings(found), "problems": list(found.problems)}

    scores = []
    for mutant in choose(changing(), ids):
        if mutant.algorithm not in rows:
            rows[mutant.algorithm] = read(usual, mutant.algorithm)
        ours, theirs = read(mutants.bench_of(mutant, lambda line: None), mutant.measured), rows[mutant.algorithm]
        found = suspects.suspects(mutant.algorithm, ours["readings"], theirs["readings"])
        scores.append(Score(mutant=mutant, suspects=found, looked=bool(ours["readings"]), problems=ours["problems"]))
    return scores


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--trials", default=3, show_default=True, type=click.IntRange(1))
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1))
@click.option(
    "--results", type=click.Path(path_type=pathlib.Path), help="[default: results/why-mutants.jsonl or clauses.jsonl]"
)
@click.option("--record", is_flag=True, help="Keep what was read in mutants/why.json.")
@click.option("--changes", "of_changes", is_flag=True, help="Score what --changes adds.")
def main(ids, trials, workers, results, record, of_changes):
    """Print the tables of docs/findings-why.md."""
    if of_changes:
        click.echo(table(score_changes(ids, results or pathlib.Path("results/clauses.jsonl"))))
        return
    if record and ids:
        raise click.UsageError("--record keeps what was read of all mutants: name none")
    kept = Readings(results or pathlib.Path("results/why-mutants.jsonl"), runs.seeds(trials))
    chosen = choose(mutants.corpus(), ids)
    usual = benches.find()
    rows = {name: kept.of(name, usual, name, name) for name in sorted({mutant.algorithm for mutant in chosen})}

    def one(mutant, bench):
        rows[mutant.id] = kept.of(mutant.id, bench, mutant.measured, mutant.algorithm)
        found = score(mutant, rows)
        click.echo(f"{found.rank or '-'}  {mutant.id}: {mutant.suspect}; {', '.join(s.label for s in found.suspects)}")
        return found

    with concurrent.futures.ThreadPoolExecutor(workers) as executor:
        # Kernels are built, and variants tried out, one after the other.
        futures = [executor.submit(one, mutant, mutants.bench_of(mutant, lambda line: None)) for mutant in chosen]
        scores = [future.result() for future in futures]
    if record:
        lines = [json.dumps(row) for _, row in sorted(rows.items())]
        files.write(RECORD, "[\n" + ",\n".join(lines) + "\n]\n")
        files.write(REFERENCES, references_text(rows, {name: usual.scheme(name).id for name in OWN_KERNELS}))
    click.echo(table(scores))


if __name__ == "__main__":
    main()
