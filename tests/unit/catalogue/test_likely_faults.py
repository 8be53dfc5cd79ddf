"""How often the likeliest faults are those that a BBRv3 has; run it with -s for the figures (docs/bbr-draft.md)."""

import json
import pathlib
import statistics

import pytest
import record_deviations

from conformance.catalogue import clause_record, clauses, deviation_record, deviations, likely_faults
from conformance.catalogue.deviation_record import HONEST

DRAFT = {clause.id: clause for clause in clauses.first_for("bbrv3").clauses}
FIRST = 3
#: a clause that the play of the document itself does not keep: it paces no initial window
PLAYED_OTHERWISE = {"BBR522"}
#: which deviations are in the sources of real stacks, as readers say who knew no measurement; `alike`: another cause
#: has the same effect where the deviation shows
OF_STACKS = json.loads((pathlib.Path(__file__).parent / "deviations_of_stacks.json").read_text())
#: one trial of each network at seed 10001, of deviations that were drawn by lot
FRESH = json.loads((pathlib.Path(__file__).parent / "fresh_deviations.json").read_text())


def counted(measured):
    """Return, of {deviation: what clauses measured of it}, those that are among the first three faults, and all."""
    named = {
        name for name, amounts in measured.items() if name in [e.fault for e in likely_faults.ranked(amounts)[:FIRST]]
    }
    return named, set(measured)


def medians():
    """Return {deviation: median of each clause that guests measured of it}, without pairs of deviations."""
    record = deviation_record.load()
    single = (name for name in record if name != HONEST and "+" not in name)
    return {name: {of: statistics.median(values) for of, values in record[name].items()} for name in single}


def test_the_plays_are_of_todays_sources():
    recorded = json.loads(likely_faults.path().read_text())
    assert recorded["of"] == likely_faults.digest(), "python tests/record_plays.py [NAMES of what changed] plays again"
    assert likely_faults.plays().keys() == {HONEST, *deviations.load()}


def test_the_digest_of_plays_covers_networks_and_what_reads_packets(monkeypatch, tmp_path):
    whole = likely_faults.digest()
    with monkeypatch.context() as patch:
        patch.setattr(likely_faults, "_draft", dict)
        assert likely_faults.digest() != whole
    (tmp_path / "model" / "captures").mkdir(parents=True)
    (tmp_path / "model" / "captures" / "states.py").write_text("another")
    monkeypatch.setattr(likely_faults.paths, "PACKAGE", tmp_path)
    likely_faults._draft()  # reads what ships
    assert likely_faults.digest() != whole


def test_the_play_of_the_document_keeps_its_clauses():
    honest = likely_faults.plays()[HONEST]
    assert {name for name, amount in honest.items() if amount not in DRAFT[name].bound} == PLAYED_OTHERWISE


def test_plays_are_on_the_side_of_a_bound_where_guests_are():
    sides = []
    for name, by_clause in deviation_record.load().items():
        for of, values in by_clause.items():
            if (amount := likely_faults.plays()[name].get(of)) is not None and of not in PLAYED_OTHERWISE:
                bound = DRAFT[of].bound
                played = "above" if amount > bound.high else "below" if amount < bound.low else None
                sides.append(played == record_deviations.side(DRAFT[of], values))
    print(f"the same side as guests: {sum(sides)} of {len(sides)}")
    assert sum(sides) >= 0.95 * len(sides)


def test_each_deviation_has_a_section_of_the_draft():
    single = {name for name in deviations.load() if "+" not in name}
    assert likely_faults.sections().keys() == single
    assert likely_faults.sections()["drain-0.35"] == "5.3.2"


@pytest.mark.slow
def test_deviations_in_guests_are_among_the_first_three_faults():
    named, every = counted(medians())
    print(f"used for tuning: {len(named)} of {len(every)}; not: {sorted(every - named)}")
    assert len(named) >= 0.8 * len(every)


def test_deviations_at_fresh_seeds_are_among_the_first_three_faults():
    fresh = {name: amounts for name, amounts in FRESH.items() if name != HONEST}
    named, every = counted(fresh)
    print(f"fresh: {len(named)} of {len(every)}; not: {sorted(every - named)}")
    assert len(named) >= 0.8 * len(every)
    assert likely_faults.ranked(FRESH[HONEST]) == []


@pytest.mark.slow
def test_faults_of_real_stacks_are_as_often_named_as_the_page_says():
    first, stacks, lines = [], [], []
    for stack, of_stack in OF_STACKS.items():
        has, measured = of_stack["deviations"].keys(), clause_record.measured(stack, "bbrv3")
        assert has <= deviations.load().keys()
        named = [explanation.fault for explanation in likely_faults.ranked(measured)[:FIRST]]
        on_lines = {name for line in likely_faults.by_chapter(measured)[:FIRST] for name in line.names}
        print(f"{stack}: {', '.join(f'{name}: {name in has}' for name in named)}")
        first += [name in has for name in named]
        stacks.append(not has.isdisjoint(named))
        lines.append(not has.isdisjoint(on_lines))
    print(
        f"of {len(first)} first faults, {sum(first)} are in the source; {sum(stacks)} of {len(stacks)} stacks have one"
    )
    print(f"of theirs among the first three, {sum(lines)} on the first three lines")
    assert len(first) == 18 and sum(first) >= 10 and sum(stacks) >= 5 and sum(lines) == len(lines) == 6


@pytest.mark.slow
def test_a_fault_whose_signature_is_missing_is_seldom_found_by_its_chapter(monkeypatch):
    signatures = dict(likely_faults._signatures())
    chapters = {name: likely_faults.chapter(section) for name, section in likely_faults.sections().items()}
    alike = [name for name in chapters if list(chapters.values()).count(chapters[name]) > 1]
    count = 0
    for name in alike:
        others = {other: signature for other, signature in signatures.items() if other != name}
        monkeypatch.setattr(likely_faults, "_signatures", lambda others=others: others)
        count += chapters[name] in [line.chapter for line in likely_faults.by_chapter(medians()[name])[:FIRST]]
    print(f"without its signature: the chapter of {count} of {len(alike)}")
    assert count >= 29 and len(alike) == 65


@pytest.mark.parametrize(
    ("measured", "likeliest"),
    [
        # as docs/bbr-draft.md has them
        ({"BBR04": 7.0, "BBR31": 0.98, "BBR302": 0.981, "BBR10": 5.24}, {"drain-unbounded", "deaf-to-ce"}),
        ({"BBR10": 27.4, "BBR110": 1.0, "BBR210": 0.0}, {"no-probe-rtt"}),
        ({"BBR302": 0.98}, {"no-headroom"}),
    ],
)
def test_faults_that_explain_what_is_violated_together_are_the_likeliest(measured, likeliest):
    assert likeliest <= {explanation.fault for explanation in likely_faults.ranked(measured)[:FIRST]}


def test_a_stack_that_is_the_document_has_no_fault():
    honest = deviation_record.load()[HONEST]
    assert likely_faults.ranked({name: statistics.median(values) for name, values in honest.items()}) == []
