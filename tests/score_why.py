"""How often does `conformance why` name what is wrong? Over the mutants, whose labels say it (tests/mutants/).

    python tests/score_why.py [--trials 2] [--results results/why-mutants.jsonl] [--out TABLE.md] [IDS ...]

Each mutant is traced as `conformance why` does it, and compared with the reference that it claims to be. What was read
of its traces is kept in the results file: what is there, read by the same code on the same kernel, is not traced again.
"""

import concurrent.futures
import dataclasses
import json
import pathlib
import threading

import click

from conformance import engine, mutants, why
from conformance.model import digest, suspects
from conformance.model.mutants import Mutant, choose
from conformance.model.telling import CELLS, FEATURES, PROFILE

_SUITE = pathlib.Path(why.__file__).parent
#: what a reading depends on, besides what is traced
_CODE = ("why.py", "trace.py", "model/flow.py", "model/features.py")


class Readings:
    """{Feature: Reading} of schemes, from the results file, or traced now and added to it."""

    def __init__(self, path, seeds):
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text().splitlines() if path.exists() else ()
        self._known = {line["key"]: line for line in map(json.loads, lines)}
        self._path, self._seeds, self._lock = path, seeds, threading.Lock()

    def of(self, name, bench, algorithm):
        """(readings, problems). Raises UserError."""
        scheme = bench.scheme(algorithm)
        code = [(_SUITE / file).read_text() for file in _CODE]
        how = [repr(CELLS), PROFILE, [[f.id, f.mean, f.least, f.of_kept] for f in FEATURES]]
        key = digest.of_value([algorithm, scheme.kernel_digest, scheme.stack_digest, list(self._seeds), code, how])
        if key not in self._known:
            found = why.traced(bench, algorithm, self._seeds)
            read = suspects.readings(found.flows)
            problems = found.problems + ([found.unsupported] if found.unsupported else [])
            line = {"key": key, "name": name, "problems": problems}
            line["readings"] = {feature.id: dataclasses.asdict(reading) for feature, reading in read.items()}
            with self._lock, open(self._path, "a") as out:
                out.write(json.dumps(line) + "\n")
            self._known[key] = line
        line = self._known[key]
        by_id = {feature.id: feature for feature in FEATURES}
        read = {by_id[name]: suspects.Reading(**reading) for name, reading in line["readings"].items()}
        return read, line["problems"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Score:
    """What came of one mutant."""

    mutant: Mutant
    suspects: list
    problems: list

    @property
    def rank(self):
        """1 where the top suspect is the right one; None where none of them is."""
        labels = [suspect.label for suspect in self.suspects]
        return labels.index(self.mutant.suspect) + 1 if self.mutant.suspect in labels else None


def table(scores):
    """Markdown: the counts, and a row for each mutant."""
    looked = [score for score in scores if not score.problems]
    counts = [sum(score.rank is not None and score.rank <= most for score in looked) for most in (1, 2)]
    shares = [f"{count} ({count / max(len(looked), 1):.0%})" for count in counts]
    without, errors = sum(not score.suspects for score in looked), len(scores) - len(looked)
    rows = [
        f"{len(looked)} mutants: the top suspect is the right one of {shares[0]}, one of the top two of {shares[1]};"
        f" {without} without a suspect; {errors} errors.",
        "",
        "| mutant | is wrong | rank | suspects, with their weights | evidence of the first |",
        "|---|---|---|---|---|",
    ]
    for score in scores:
        found = ", ".join(f"{suspect.label} {suspect.weight:.1f}" for suspect in score.suspects)
        words = score.suspects[0].evidence[0].sentence if score.suspects else ""
        words = f"error: {score.problems[0]}" if score.problems else words
        rows.append(f"| {score.mutant.id} | {score.mutant.suspect} | {score.rank or '-'} | {found} | {words} |")
    return "\n".join(rows) + "\n"


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--trials", default=3, show_default=True, type=click.IntRange(1))
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1))
@click.option("--results", default="results/why-mutants.jsonl", type=click.Path(path_type=pathlib.Path))
@click.option("--out", "target", type=click.Path(path_type=pathlib.Path))
def main(ids, trials, workers, results, target):
    """Print the table; with --out, write it as well."""
    kept = Readings(results, engine.seeds(trials))
    chosen = choose(mutants.corpus(), ids)
    usual = engine.bench()
    theirs = {name: kept.of(name, usual, name)[0] for name in sorted({mutant.algorithm for mutant in chosen})}

    def one(mutant, bench):
        ours, problems = kept.of(mutant.id, bench, mutant.measured)
        found = suspects.suspects(mutant.algorithm, ours, theirs[mutant.algorithm])
        score = Score(mutant=mutant, suspects=found, problems=problems)
        click.echo(f"{score.rank or '-'}  {mutant.id}: {mutant.suspect}; {', '.join(s.label for s in found)}")
        return score

    with concurrent.futures.ThreadPoolExecutor(workers) as executor:
        # Kernels are built, and variants tried out, one after the other.
        futures = [executor.submit(one, mutant, mutants.bench_of(mutant, lambda line: None)) for mutant in chosen]
        scores = [future.result() for future in futures]
    text = table(scores)
    click.echo(text)
    if target:
        target.write_text(text)


if __name__ == "__main__":
    main()
