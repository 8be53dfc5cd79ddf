"""Count how often `conformance why` names the bug of a mutant, which the mutant's label tells (mutants/).

    python tests/score_why.py [--trials 3] [--results results/why-mutants.jsonl] [--record] [IDS ...]

Each mutant is traced as `conformance why` does it, and compared with the reference that it claims to be. The readings
of its traces are kept in the results file; a mutant is not traced again if the file has readings by the same code on
the same kernel. With --record, the readings also go to mutants/why.json, from which the score can be computed again
without a guest, and the readings of the references of BBRv2 and BBRv3 go to zones/features.json.

    python tests/score_why.py --changes [--results results/clauses.jsonl] [IDS ...]

This scores what `why --changes` adds, over the mutants of all files whose label one of its features can give. Its
trials are those of clauses with seed 1001, so a results file of `conformance clause run` holds some of them.
"""

import concurrent.futures
import dataclasses
import json
import pathlib
import re
import threading

import click
import msgspec
import rich.console

from conformance.catalogue import recorded_features
from conformance.commands import mutants, tracing, why
from conformance.engine import benches, runs
from conformance.model import digest
from conformance.model.clauses import changes
from conformance.model.diagnosis import ranking as suspects
from conformance.model.diagnosis.feature_table import CELLS, FEATURES, PROFILE, label_of
from conformance.model.judging import seeds
from conformance.model.studies.mutants import Mutant, choose
from conformance.reporting.text.progress import ConsoleNotes
from conformance.support import files, paths

RECORD = mutants.folder() / "why.json"
#: readings that replace those of references whose kernels users have to build themselves (recorded_features.py)
REFERENCES = paths.data("zones", "features.json")
OWN_KERNELS = ("bbrv2", "bbrv3")
_SUITE = paths.PACKAGE
#: source files on which a reading depends, besides what is traced
_CODE = ("commands/tracing.py", "commands/trace.py", "model/diagnosis/flow.py", "model/diagnosis/features.py")
_NUMBERS, _DIGITS = ("value", "low", "high", "spread"), 6


class Readings:
    """Readings of schemes by feature, which come from the results file, or are traced now and added to it."""

    def __init__(self, path, seeds):
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text().splitlines() if path.exists() else ()
        self._known = {line["key"]: line for line in map(json.loads, lines)}
        self._path, self._seeds, self._lock = path, seeds, threading.Lock()

    def of(self, name, bench, algorithm, claimed):
        """Return the row() of `algorithm`, which claims to be `claimed`. Raises UserError."""
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
    """Return as JSON what is kept of a Traced and its {Feature: Reading}; of a Reading, the numbers for suspects."""
    rounded = {
        feature.id: {"n": reading.n, **{of: float(f"{getattr(reading, of):.{_DIGITS}g}") for of in _NUMBERS}}
        for feature, reading in read.items()
    }
    return {
        "name": name,
        "problems": found.problems + ([found.unsupported] if found.unsupported else []),
        "readings": rounded,
    }


def kept_references():
    """Return {name: what REFERENCES has of it}."""
    return json.loads(REFERENCES.read_text(encoding="utf-8"))["references"]


def with_readings(rows, ids):
    """Return kept_references() with the readings of OWN_KERNELS in {name: row}; `ids`: {name: id of the scheme}."""
    kept = kept_references()
    return {name: {**kept[name], "scheme": ids[name], "readings": rows[name]["readings"]} for name in OWN_KERNELS}


def references_text(kept):
    """Return the text of REFERENCES, in which the traits of a trial are a line."""
    text = json.dumps({"schema": "recorded-features/1", "references": kept}, indent=1) + "\n"
    return re.sub(r"\[[^][]+\]", lambda numbers: json.dumps(json.loads(numbers[0])), text)


def readings(row):
    """Return {Feature: Reading} of a row()."""
    return recorded_features.readings(msgspec.convert(row["readings"], dict[str, recorded_features.ReadingNumbers]))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Score:
    """The result for one mutant. `looked`: whether it has any reading; `problems`: why some cells have none."""

    mutant: Mutant
    suspects: list
    looked: bool
    problems: list

    @property
    def rank(self):
        """The rank of the right suspect, 1 for the top one; None if it is not among the suspects."""
        labels = [suspect.label for suspect in self.suspects]
        return labels.index(self.mutant.suspect) + 1 if self.mutant.suspect in labels else None


def score(mutant, rows):
    """Return the Score of a mutant from its row and that of the reference that it claims to be; `rows`: {name: row}."""
    found = suspects.suspects(mutant.algorithm, readings(rows[mutant.id]), readings(rows[mutant.algorithm]))
    row = rows[mutant.id]
    return Score(mutant=mutant, suspects=found, looked=bool(row["readings"]), problems=row["problems"])


def recorded_rows():
    """Return {name: row} of the mutants and references in the record."""
    return {row["name"]: row for row in json.loads(RECORD.read_text(encoding="utf-8"))}


def recorded():
    """Return the Scores of the mutants in the record."""
    rows = recorded_rows()
    return [score(mutant, rows) for mutant in mutants.corpus() if mutant.id in rows]


#: {heading in the table: the algorithms whose mutants are counted together}
GROUPS = {"CUBIC, Reno and BBRv1": ("cubic", "reno", "bbrv1"), "BBRv2 and BBRv3": ("bbrv2", "bbrv3")}


def counts(scores):
    """Return a sentence that says how many of the scores are right."""
    looked = [score for score in scores if score.looked]
    right = [sum(score.rank is not None and score.rank <= most for score in looked) for most in (1, 2)]
    shares = [f"{count} ({count / max(len(looked), 1):.0%})" for count in right]
    without, errors = sum(not score.suspects for score in looked), len(scores) - len(looked)
    return (
        f"{len(looked)} mutants: the top suspect is the right one of {shares[0]}, one of the top two of {shares[1]};"
        f" {without} without a suspect; {errors} errors."
    )


def table(scores, evidence=True):
    """Return Markdown with the counts() of each of GROUPS, and a table with a row for each mutant.

    `evidence`: whether it says what the first suspect was seen to do. The page leaves that out, and mutants whose
    first suspect is the right one.
    """
    groups = {name: [s for s in scores if s.mutant.algorithm in algorithms] for name, algorithms in GROUPS.items()}
    rows = [
        *(f"- {name}: {counts(own)}" for name, own in groups.items() if own),
        "",
        "| mutant | is wrong | rank | suspects, with their weights |" + " evidence of the first |" * evidence,
        "|---|---|---|---|" + "---|" * evidence,
    ]
    for score in scores:
        if score.rank == 1 and not evidence:
            continue
        found = ", ".join(f"{suspect.label} {suspect.weight:.1f}" for suspect in score.suspects)
        words = score.suspects[0].evidence[0].sentence if score.suspects else ""
        words += f" (not looked at: {'; '.join(score.problems)})" if score.problems else ""
        row = f"| {score.mutant.id} | {score.mutant.suspect} | {score.rank or '-'} | {found} |"
        rows.append(row + f" {words} |" * evidence)
    return "\n".join(rows) + "\n"


#: files of mutants; among them are those that should show when the network or the application changes
CORPORA = ("mutants.json", "clauses.json", "changes.json")


def given(algorithm):
    """Return the labels that features of changing networks can give an algorithm."""
    return {label_of(feature, algorithm) for feature in changes.FEATURES} - {None}


def changing():
    """Return the mutants whose label one of those features can give; by design, changes say nothing about others."""
    every = [mutant for file in CORPORA for mutant in mutants.corpus(file)]
    return [mutant for mutant in every if mutant.suspect in given(mutant.algorithm)]


def score_changes(ids, results):
    """Return the Scores of the mutants of changing(), from changing networks alone."""
    console = rich.console.Console(stderr=True)
    usual, rows = benches.find(), {}

    def read(bench, algorithm):
        means = benches.Means(results=results, notes=ConsoleNotes(console))
        found = why.seen(bench, algorithm, range(seeds.JUDGED, seeds.JUDGED + 1), means)
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
        # bench_of() is called here: it builds kernels and tries variants out one after the other.
        futures = [executor.submit(one, mutant, mutants.bench_of(mutant, lambda line: None)) for mutant in chosen]
        scores = [future.result() for future in futures]
    if record:
        lines = [json.dumps(row) for _, row in sorted(rows.items())]
        files.write(RECORD, "[\n" + ",\n".join(lines) + "\n]\n")
        ids = {name: usual.scheme(name).id for name in OWN_KERNELS}
        files.write(REFERENCES, references_text(with_readings(rows, ids)))
    click.echo(table(scores))


if __name__ == "__main__":
    main()
