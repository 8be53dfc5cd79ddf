"""How often does `conformance why` name what is wrong? Over the mutants, whose labels say it (tests/mutants/).

    python tests/score_why.py [--trials 2] [--results results/why-mutants.jsonl] [--out TABLE.md] [IDS ...]

Each mutant is traced as `conformance why` does it, and compared with the reference that it claims to be. What is in
the results file already, measured by the same code on the same kernel, is not traced again.
"""

import concurrent.futures
import json
import pathlib
import threading

import click

from conformance import engine, mutants, why
from conformance.model import digest, suspects
from conformance.model.mutants import choose

_SUITE = pathlib.Path(why.__file__).parent
#: what a line of the results depends on, besides the mutant
_CODE = ("why.py", "trace.py", "model/flow.py", "model/features.py", "model/telling.py", "model/suspects.py")


class Line(dict):
    """Of the results file: id, key, label (what is wrong), found ([[label, weight], ...]), sentence, problems."""

    @property
    def rank(self):
        """1 where the top suspect is the right one; None where none of them is."""
        return next((at for at, (label, _) in enumerate(self["found"], 1) if label == self["label"]), None)


class References:
    """The references' readings, each traced once."""

    def __init__(self, seeds):
        self._seeds, self._lock, self._known = seeds, threading.Lock(), {}

    def of(self, algorithm):
        with self._lock:
            if algorithm not in self._known:
                found = why.traced(engine.bench(), algorithm, self._seeds)
                self._known[algorithm] = suspects.readings(found.flows)
            return self._known[algorithm]


def look(mutant, bench, seeds, references, key):
    """The Line of one mutant, traced now."""
    ours = why.traced(bench, mutant.measured, seeds)
    found = suspects.suspects(mutant.algorithm, suspects.readings(ours.flows), references.of(mutant.algorithm))
    return Line(
        id=mutant.id, key=key, label=mutant.suspect,
        found=[[suspect.label, round(suspect.weight, 1)] for suspect in found],
        sentence=found[0].evidence[0].sentence if found else "", problems=ours.problems,
    )  # fmt: skip


def key_of(mutant, bench, seeds):
    code = [(_SUITE / name).read_text() for name in _CODE]
    return digest.of_value(
        [mutant.id, bench.scheme(mutant.measured).kernel_digest, bench.adapter.digest, len(seeds), code]
    )


def table(lines):
    """Markdown: the counts, and a row for each mutant."""
    looked = [line for line in lines if not line["problems"]]
    top, two = (sum(line.rank is not None and line.rank <= most for line in looked) for most in (1, 2))
    rows = [
        f"{len(looked)} mutants: the top suspect is the right one of {top} ({top / max(len(looked), 1):.0%}), one of"
        f" the top two of {two} ({two / max(len(looked), 1):.0%});"
        f" {sum(not line['found'] for line in looked)} without a suspect;"
        f" {len(lines) - len(looked)} errors.",
        "",
        "| mutant | is wrong | rank | suspects, with their weights | evidence of the first |",
        "|---|---|---|---|---|",
    ]
    for line in lines:
        found = ", ".join(f"{label} {weight}" for label, weight in line["found"])
        words = line["sentence"] if not line["problems"] else f"error: {line['problems'][0]}"
        rows.append(f"| {line['id']} | {line['label']} | {line.rank or ''} | {found} | {words} |")
    return "\n".join(rows) + "\n"


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--trials", default=3, show_default=True, type=click.IntRange(1))
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1))
@click.option(
    "--results", default="results/why-mutants.jsonl", show_default=True, type=click.Path(path_type=pathlib.Path)
)
@click.option("--out", "target", type=click.Path(path_type=pathlib.Path))
def main(ids, trials, workers, results, target):
    results.parent.mkdir(parents=True, exist_ok=True)
    known = {}
    if results.exists():
        known = {line["key"]: line for line in map(Line, map(json.loads, results.read_text().splitlines()))}
    seeds, lock = engine.seeds(trials), threading.Lock()
    references = References(seeds)

    def one(mutant, bench):
        key = key_of(mutant, bench, seeds)
        if key not in known:
            line = look(mutant, bench, seeds, references, key)
            with lock, open(results, "a") as out:
                out.write(json.dumps(line) + "\n")
            click.echo(f"{line.rank or '-'}  {line['id']}: {line['label']}; {line['found']}")
            known[key] = line
        return known[key]

    chosen = choose(mutants.corpus(), ids)
    # Kernels are built and variants tried out one after the other.
    benches = [mutants._bench(mutant, lambda line: None) for mutant in chosen]
    with concurrent.futures.ThreadPoolExecutor(workers) as executor:
        lines = list(executor.map(one, chosen, benches))
    text = table(lines)
    click.echo(text)
    if target:
        target.write_text(text)


if __name__ == "__main__":
    main()
