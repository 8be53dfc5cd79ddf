"""Parts of reports: reading, tables, words, commands, and forms for other tools."""

import collections
import csv
import dataclasses
import io
import json
import re
import shlex

import click
import hypothesis
import hypothesis.strategies as st
import pyarrow.parquet
import pytest
from helpers import (
    CELL,
    EVIL,
    as_read,
    changed,
    counted,
    measurement,
    measurements,
    measurements_of,
    of_trial,
    refusal,
    results_file,
    scheme,
    setting,
    shared_measurement,
    trial_at,
)

from conformance.catalogue import clause_record, documents, scenarios
from conformance.cli import main, measuring
from conformance.model import digest
from conformance.model.errors import UserError
from conformance.model.judging import seeds
from conformance.model.judging.verdict import Status
from conformance.model.metrics.table import tabled
from conformance.model.networks.place import Cell, Point, end_to_end
from conformance.model.trials.trial import Outcome
from conformance.reporting import charts, heatmaps, naming, rerun
from conformance.reporting.html import cell_page, colours, compare, heatmap_table, rfc9743, rfc9743_figures, site, slugs
from conformance.reporting.marks import LOOKS
from conformance.reporting.text import markdown, scores
from conformance.reporting.tools import badge, export
from conformance.results import store
from conformance.results.source import Source
from conformance.support import paths, schema


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return Source([results_file(tmp_path_factory.mktemp("results") / "results.jsonl")])


@pytest.fixture(scope="module")
def series(source):
    return heatmaps.all_series(source.measurements)


def of(series, algorithm="cubic", stack="linux-tcp"):
    return next(s for s in series if (s.scheme.algorithm, s.scheme.stack) == (algorithm, stack))


# Reading


def test_keys_are_digests_of_what_a_trial_is():
    trial = measurement().trial
    scheme = dataclasses.asdict(trial.scheme)
    for name in ("kernel", "kernel_release", "stack_version"):
        del scheme[name]
    whole = [trial.setting.to_json(), scheme, trial.seed, trial.room, trial.lab_digest]
    assert trial.key == digest.of_value(whole)


def test_a_source_keeps_verdicts_worth_and_finds_whole_lines_again(source):
    lean = next(m for m in source.measurements if m.metrics)
    assert "trace" not in lean.evidence
    whole = source.whole(lean)
    assert whole.trial == lean.trial and whole.evidence["trace"]["t_s"]
    assert whole.value("lost_pct") == lean.value("lost_pct")


def test_of_trials_made_twice_the_last_counts(tmp_path):
    path = tmp_path / "twice.jsonl"
    kept = store.Store(path)
    kept.add(measurement(seed=1, outcome=Outcome.ERROR, message="died"))
    kept.add(measurement(0.4, 1))
    (found,) = Source([path]).measurements
    assert found.utilization == 0.4
    assert Source([path]).whole(found).utilization == 0.4


def _broken(change):
    """Return a changed line of an older lab, as such lines have no records that need no evidence."""
    data = {**measurement().to_json(), "flows": [], "links": []}
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["metrics"].update(utilization="high"), "utilization"),
        (lambda d: d["metrics"].update(utilization=float("nan")), "not a number"),
        (lambda d: d["trial"]["scheme"].update(stack=["a"]), "stack"),
        (lambda d: d["trial"]["scheme"].update(stack=7), "7 is not of type"),
        (lambda d: d["evidence"].update(interfaces={"server": {"eth0": {}}}), "/evidence/interfaces"),
        (lambda d: d["evidence"].update(interfaces=[1]), "/evidence/interfaces: [1] is not of type"),
        (lambda d: d["evidence"].update(kernel_release=float("inf")), "not a number"),
        (lambda d: d["evidence"].update(kernel_release="\ud800"), "/evidence/kernel_release: half of a character"),
        (lambda d: d.update(outcome="fine"), "fine"),
        (lambda d: d["trial"]["setting"]["cell"].update(loss_pct=99), "loss_pct is 99"),
    ],
)
def test_a_broken_line_is_refused_with_its_place_and_cause(tmp_path, change, words):
    path = tmp_path / "broken.jsonl"
    path.write_text(json.dumps(measurement(seed=2).to_json()) + "\n" + _broken(change) + "\n")
    caught = refusal(Source, [path])
    assert "broken.jsonl:2" in caught and words in caught


def test_evidence_that_a_page_cannot_show_is_named_and_leaves_no_half_of_a_site(tmp_path):
    path = results_file(tmp_path / "results.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line["evidence"]["calibration"] = [{"rate_mbps": 10**400, "loss_sent": 1, "loss_lost": 0, "delays_ms": []}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(
        UserError, match=r"results\.jsonl:\d+: /evidence: not in the format of result lines: int too large"
    ):
        site.write(Source([path]), tmp_path / "site")
    for line in lines:
        line["evidence"]["calibration"] = [{"rate_mbps": 10}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(UserError, match=r"results\.jsonl:\d+: /evidence: not in the format .*: 'loss_sent' is missing"):
        site.write(Source([path]), tmp_path / "site")
    assert not [p for p in (tmp_path / "site").rglob("*") if p.is_file()]


def test_no_results_are_one_line(tmp_path):
    path = tmp_path / "empty.jsonl"
    path.write_text("")
    with pytest.raises(UserError, match=r"no results in .*empty\.jsonl; measure first"):
        Source([path])


# Tables


def test_every_kind_of_verdict_is_counted(series):
    heatmap = of(series).utilization
    assert heatmap.count() == {"conforms": 1, "violates": 1, "inconclusive": 3, "error": 1}
    by_cell = {cell.id: result.status for cell, result in heatmap.results.items()}
    assert by_cell["10mbps-20ms-1pct"] == "conforms"
    assert by_cell["10mbps-40ms-1pct"] == "violates"
    assert by_cell["10mbps-60ms-1pct"] == "inconclusive"
    assert by_cell["10mbps-80ms-1pct"] == "error"
    assert of(series, "prague").utilization.results[CELL].status == "unsupported"
    assert of(series, "newalgo").utilization.results[CELL].status == "not judged"


def test_a_metric_that_no_trial_has_is_not_judged_and_no_error():
    """Older results have no counts of packets, so their loss is not known."""
    (one,) = heatmaps.all_series(measurements([0.5] * 5, algorithm="newalgo"))
    assert {heatmap.metric: [r.status for r in heatmap.results.values()] for heatmap in one.heatmaps} == {
        heatmap.metric: ["not judged"] for heatmap in one.heatmaps
    }
    assert {r.value for heatmap in one.heatmaps for r in heatmap.results.values()} == {0.5, None}


def test_medians_intervals_and_losses(series):
    result = of(series).utilization.results[CELL]
    assert (result.value, result.low, result.high, result.interval) == (0.42, 0.40, 0.44, (0.40, 0.44))
    assert of(series).lost.results[CELL].value == pytest.approx(1.9)
    assert of(series).utilization.results[Cell(20, 20, 0)].interval is None
    # Missing is never zero.
    failed = of(series).utilization.results[Cell(10, 80, 1)]
    assert failed.value is None and failed.difference is None


def test_what_timed_out_is_shown_as_a_bound(series):
    result = of(series).utilization.results[Cell(10, 100, 4)]
    assert (result.late, result.interval) == (1, None)
    assert heatmap_table.value_text("utilization", result) == "≤0.01"
    assert "1 of 1 transfers timed out\nutilization at most 0.0100" in heatmap_table.about("utilization", result)


def test_paths_of_two_segments_are_not_cells():
    segments = (Cell(10, 20, 0), Cell(50, 60, 1))
    path = changed(setting(), cell=end_to_end(segments), segments=segments)
    made = of_trial(measurement(), setting=path)
    assert "only of paths with two segments" in refusal(heatmaps.all_series, [made])
    assert len(heatmaps.all_series([made, measurement()])) == 1


def test_words_of_a_cell_hold_trials_interval_zone_and_verdict(series):
    words = heatmap_table.about("utilization", of(series).utilization.results[CELL])
    assert words.startswith("10mbps-20ms-1pct\n")
    assert "utilization 0.4200, median of 5; 90 % interval 0.4000 to 0.4400" in words
    assert "conforms, inside the zone" in words
    assert "too few trials" in heatmap_table.about("utilization", of(series).utilization.results[Cell(20, 20, 0)])
    died = of(series).utilization.results[Cell(10, 80, 1)]
    assert "error: the server died" in heatmap_table.about("utilization", died)


@pytest.mark.parametrize(
    ("difference", "text"),
    [(0.0, "0.00"), (-0.001, "0.00"), (0.254, "+0.25"), (-0.5, "−0.50"), (None, "")],  # noqa: RUF001
)
def test_differences_have_a_sign_unless_they_are_none(difference, text):
    assert heatmap_table.signed("utilization", difference) == text


def test_small_heatmaps_mark_what_does_not_conform_without_colour(series):
    drawn = of(series).utilization
    picture = heatmap_table.small(drawn)
    strokes = " ".join(path for name, path in picture.paths if name.startswith("mark"))
    for status in (Status.VIOLATES, Status.INCONCLUSIVE, Status.ERROR):
        assert LOOKS[status].stroke.path in strokes
    assert "1 violates, 1 error, 3 inconclusive, 1 conforms" in picture.about
    by_kind = heatmap_table.small(dataclasses.replace(drawn, kinds=(drawn.results[CELL].verdict,)))
    assert not any(name.startswith("mark") for name, _ in by_kind.paths), "its cells do not count"


# Colours


def test_every_step_of_every_scale_is_readable():
    for anchors in (colours.VIRIDIS, colours.PUOR):
        for colour in colours.ramp(anchors):
            assert colours.contrast(colour, colours.ink(colour)) >= 4.5


def test_values_are_told_apart_in_print_and_differences_have_two_ends():
    light = [colours.luminance(c) for c in colours.ramp(colours.VIRIDIS)]
    assert light == sorted(light)
    around = [colours.luminance(c) for c in colours.ramp(colours.PUOR)]
    assert max(around) == around[len(around) // 2]


def test_steps_stay_on_their_scale():
    assert [colours.value_step("utilization", v) for v in (-1, 0, 1, 7, None)] == ["u0", "u0", "u20", "u20", "none"]


def test_badges_are_readable():
    for status in Status:
        colour = LOOKS[status].tone.colour
        rgb = tuple(int(colour[at : at + 2], 16) for at in (1, 3, 5))
        assert colours.contrast(rgb, (255, 255, 255)) >= 4.5


def test_every_verdict_is_explained_and_what_is_against_a_stack_is_framed():
    """In pages and in figures. Of the words, only those that say nothing have the colour of plain text."""
    style = (paths.data("reports", "templates") / "style.css").read_text()
    for status in Status:
        tone = LOOKS[status].tone.name
        assert LOOKS[status].meaning
        if status.decided or status is Status.ERROR:
            assert f".chip.{tone}" in style
        if status.against or status is Status.ERROR:
            assert f"td.{tone} a" in style
    (made,) = heatmaps.all_series(measurements([0.9] * 8))
    results = made.utilization.results
    for status in Status:
        results[CELL] = dataclasses.replace(
            results[CELL], verdict=dataclasses.replace(results[CELL].verdict, status=status)
        )
        (row,) = charts.rows(made.utilization)
        assert row["framed"] == (status.against or status is Status.ERROR)


# Commands


def parsed(command):
    """Return the options that the real command line reads from a command, and the Setting that they ask for."""
    words = shlex.split(command)
    assert words[0] == "conformance"
    named = {c.name: c for c in measuring.COMMANDS}[words[1]]
    root = click.Context(main, **main.context_settings)  # a command keeps the help option of its first context
    params = named.make_context(words[1], words[2:], parent=root).params
    if words[1] == "trace":
        return params, documents.profile(params["profile"], Cell.parse(params["point"]))
    offload = None if params["offload"] is None else params["offload"] == "on"
    made = documents.profile(
        params["profile"], Cell.parse(params["grid"]), queue=params["queue"], offload=offload,
        transfer_s=params["transfer_s"], rival=params["rival"],
    )  # fmt: skip
    return params, made


@pytest.mark.parametrize(
    ("stack", "option"),
    [
        ("quinn", "--stack quinn --client own "),
        ("mine", "--stack path/to/mine/adapter.json "),
        ("interop-folder", "--interop-rootfs path/to/folder "),
    ],
)
def test_a_stack_that_lies_elsewhere_is_not_taken_for_one_that_ships(stack, option):
    made = measurements([0.4] * 5, stack=stack)
    assert option in rerun.cell(made)[0]
    assert option in rerun.trial(made[0])


@pytest.mark.parametrize(
    ("stack", "said", "option"),
    [
        ("quinn", "quinn 0.11.12; client h3-client (x 1.2)", None),
        ("quinn", "quinn 0.11.12", "own"),
        ("quinn", "quinn 0.11.12; client aioquic (1.7.2)", "aioquic"),
        ("quinn", "quinn 0.11.12; client mine (1)", "path/to/mine/adapter.json"),
        ("linux-tcp", "5.15", None),
        ("mine", "1; client aioquic (1.7.2)", None),  # the client that its manifest names is not known
    ],
)
def test_the_command_that_is_shown_names_a_client_that_is_not_the_usual_one(stack, said, option):
    made = measurements([0.4] * 5, stack=stack, stack_version=said)
    for command in (rerun.cell(made)[0], rerun.trial(made[0])):
        words = shlex.split(command)
        assert (words[words.index("--client") + 1] if "--client" in words else None) == option


def test_trials_that_repeat_a_violation_do_not_hide_the_command_of_the_others():
    made = measurements([0.4] * 5)
    again = [of_trial(m, seed=m.trial.seed + seeds.FRESH) for m in made]
    assert rerun.cell([*again, *made]) == rerun.cell(made)


@pytest.mark.parametrize(
    "changes",
    [{}, {"queue": "bfifo:0.5"}, {"offload": False, "transfer_s": 2.5}, {"queue": "fq_codel"}, {"rival": "reno"}],
)
def test_the_command_that_is_shown_makes_the_same_setting(changes):
    made = [of_trial(m, setting=setting(**changes)) for m in measurements([0.4] * 7, stack="it's", kernel="my kernel")]
    params, found = parsed(rerun.cell(made)[0])
    assert found == made[0].trial.setting and params["first_seed"] == 1
    judged = [of_trial(m, seed=m.trial.seed + 1000) for m in made]
    assert "--first-seed" not in rerun.cell(judged)[0] and parsed(rerun.cell(judged)[0])[0]["first_seed"] == 1001
    assert (params["algorithm"], params["stack"], params["kernel"], params["trials"]) == (
        "cubic", "path/to/it's/adapter.json", "my kernel", 7,
    )  # fmt: skip


def test_an_adapter_that_cannot_be_read_breaks_no_report(monkeypatch):
    def broken(stack):
        raise UserError("adapter.json: not JSON", "mend it")

    monkeypatch.setattr(rerun.manifest, "read", broken)
    rerun._usual_client.cache_clear()
    try:
        assert rerun.cell(measurements([0.5]))[0].startswith("conformance run cubic ")
    finally:
        rerun._usual_client.cache_clear()


def test_one_trial_is_traced_by_its_seed():
    made = measurement(seed=107)
    params, found = parsed(rerun.trial(made))
    assert found == made.trial.setting and params["seed"] == 107 and params["packets_only"]


def test_what_no_command_makes_is_said():
    apart = [measurement(0.4, seed) for seed in (101, 102, 104)]
    assert rerun.cell(apart) == (None, "conformance run takes consecutive seeds, but these 3 from 101 to 104 have gaps")

    def under(**changes):
        return [of_trial(measurement(), setting=changed(setting(), **changes))]

    assert "sysctls" in rerun.cell(under(sysctls=(("net.ipv4.tcp_sack", "0"),)))[1]
    assert "no profile '../x'" in rerun.cell(under(profile="../x"))[1]
    assert rerun.trial(under(profile="../x")[0]) is None


# Comparison and RFC 9743


def test_comparison_is_of_one_profile_and_every_cell(series):
    cubic = [s for s in series if s.scheme.algorithm == "cubic"]
    (section,) = compare.sections(cubic)
    assert len(section.series) == 3 and len(set(section.names)) == 3
    row = next(r for r in section.rows if r.cell == CELL)
    assert [value[0] for value in row.values] == ["0.42"] * 3 and row.span == "0.00"
    lonely = next(r for r in section.rows if r.cell == Cell(20, 20, 0))
    assert sum(value is not None for value in lonely.values) == 1 and lonely.span == ""


def test_a_comparison_shows_the_zone_of_full_packets_whatever_the_first_stack_sends():
    under = documents.profile("packets", CELL)

    def sent(stack, payload):
        interfaces = counted(under.transfer_bytes, under.transfer_bytes / payload * 1514)
        made = [of_trial(m, setting=under) for m in measurements([0.3] * 5, stack=stack)]
        return [as_read(m, evidence={"interfaces": interfaces}) for m in made]

    made = heatmaps.all_series([*sent("small", 1200), *sent("tall", 1448)])
    (section,) = compare.sections(made)
    small, full = (series.utilization.results[CELL].permitted for series in made)
    assert small.high < full.high == pytest.approx(section.rows[0].permitted.high, rel=1e-3)
    (band,) = [row for row in charts.comparison(section).data.values if row["kind"] == "zone"]
    assert (band["low"], band["high"]) == (section.rows[0].permitted.low, section.rows[0].permitted.high)


def test_a_comparison_draws_few_series_in_a_chart():
    made = [m for at in range(14) for m in measurements([0.4] * 5, stack=f"stack-{at:02}")]
    (section,) = compare.sections(heatmaps.all_series(made))
    assert [len(part.series) for part in section.parts] == [5, 5, 4]
    assert [name for part in section.parts for name in part.names] == list(section.names)
    assert [value for part in section.parts for value in part.rows[0].values] == list(section.rows[0].values)


def test_what_rounding_would_hide_of_a_violation_is_seen_in_sentences_and_comparisons():
    """The median of 0.0574 is outside a zone that begins at 0.0579; rounded to two or three digits, it would not be."""
    made = heatmaps.all_series(measurements([0.5] * 5))[0]
    results = made.utilization.results
    (result,) = results.values()
    permitted = dataclasses.replace(result.permitted, low=0.0579, high=0.0951)
    results[CELL] = dataclasses.replace(result, value=0.0574, permitted=permitted)
    zone = dataclasses.replace(made.utilization.zone, intervals={CELL: permitted})
    made = dataclasses.replace(made, utilization=dataclasses.replace(made.utilization, zone=zone))
    (row,) = compare.sections([made])[0].rows
    assert (row.values[0][0], row.words) == ("0.057", "0.058 to 0.095")
    verdict = dataclasses.replace(result.verdict, value=0.05782, permitted=permitted)
    assert scores.words(verdict) == "cubic/heatmap 10mbps-20ms-1pct: 0.0578, permitted 0.0579..0.0951"


def test_a_cells_numbers_leave_out_what_repeats_its_violation():
    made = measurements([0.5] * 5)
    made += [measurement(0.9, 1 + seeds.FRESH + at) for at in range(8)]
    made = [as_read(m, metrics={**m.metrics, "goodput_mbps": 10 * m.utilization}) for m in made]
    (of_stack,) = heatmaps.all_series(made)
    (result,) = of_stack.utilization.results.values()
    assert (result.n, result.value, result.high, len(result.measurements)) == (5, 0.5, 0.5, 13)
    (row,) = export.rows([of_stack])
    assert (row["trials"], row["trials_ok"], row["goodput_mbps"]) == (5, 5, 5.0)
    assert rfc9743_figures.wireless(of_stack) == {"utilization with random loss": "0.50 (1 cell)"}
    assert cell_page.front(of_stack, CELL).utilization == 0.5


def test_an_export_counts_each_trial_that_failed():
    made = measurements([0.5] * 5) + [measurement(0, seed, Outcome.FAILED) for seed in (6, 7)]
    (of_stack,) = heatmaps.all_series(made)
    (row,) = export.rows([of_stack])
    assert (row["trials"], row["trials_ok"], row["trials_error"]) == (7, 5, 2)
    assert (row["utilization"], row["utilization_low"]) == (0.5, None)
    words = heatmap_table.about("utilization", of_stack.utilization.results[CELL])
    assert "median of the 5 of 7 trials that have a value; no interval" in words
    assert rfc9743_figures.wireless(of_stack) == {}


def test_completion_is_not_that_of_the_transfers_that_completed():
    late = measurement(0.1, 4, Outcome.TIMEOUT)
    late = as_read(late, metrics={**late.metrics, "completion_s": None})
    (row,) = export.rows(heatmaps.all_series([*measurements([0.5] * 3), late]))
    assert (row["trials_timeout"], row["utilization"], row["completion_s"]) == (1, 0.5, None)


def test_criteria_without_measurements_say_so(series):
    answers = {a.criterion.section: a for a in rfc9743.answers(series, naming.labels(s.scheme for s in series))}
    assert len(answers) == 28
    assert answers["5.1.4"].status == "not measured" and not answers["5.1.4"].tables
    assert answers["6.1"].status == "not measured"  # no result had a FIFO
    assert answers["7.1"].status == "measured in part" and answers["7.1"].tables
    (wired,) = answers["6.3"].tables[0].rows
    assert wired.scheme == "cubic/linux-tcp/6.12.0"
    assert wired.texts == {"utilization without random loss": "0.95 (1 cell)"}


def test_figures_of_another_sender_are_not_a_stacks():
    """What the kernel's DCTCP did is told by its name, whatever algorithm the run was of."""
    published = paths.PACKAGE.parent / "reports" / "published" / "scenarios" / "linux-tcp.jsonl.xz"
    made = [m for m in Source([published]).measurements if m.setting.profile == "l4s-dctcp"]
    answers = {a.criterion.section: a for a in rfc9743.answers([], naming.labels(m.scheme for m in made), made)}
    assert [row.where for row in answers["7.1"].tables[0].rows] == ["l4s-dctcp (flows of dctcp)"] * 2


@pytest.mark.parametrize(("unequal", "columns"), [((0, 0, 0), {"convergence"}), ((0, 20, 20), set())])
def test_flows_that_did_not_converge_are_no_faster_than_those_that_did(unequal, columns):
    setting_ = scenarios.setting("fairness", Point((("flows", 2),)))
    made = [shared_measurement(trial_at(setting_, seed), {"unequal_pct": of}) for seed, of in enumerate(unequal, 1)]
    answers = {a.criterion.section: a for a in rfc9743.answers([], naming.labels(m.scheme for m in made), made)}
    (row,) = answers["5.1.4"].tables[0].rows
    assert row.texts.keys() & {"Jain's index", "convergence"} == {"Jain's index"} | columns


@pytest.mark.parametrize(("rival", "own"), [("cubic", True), ("reno", False)])
def test_a_flow_beside_a_rival_answers_what_is_asked_of_two_flows_only(rival, own):
    setting_ = documents.profile("competing", CELL, rival=rival)
    made = [of_trial(m, setting=setting_) for m in measurements([0.4] * 5)]
    series = heatmaps.all_series(made)
    answers = rfc9743.answers(series, naming.labels(s.scheme for s in series))
    firsts = {a.criterion.section: a.tables[0].rows[0] for a in answers if a.tables}
    rows = {section: first.texts for section, first in firsts.items() if first.series}
    assert rows.keys() == ({"5.1.4", "5.2.1"} if own else {"5.2.1"})
    assert rows["5.2.1"]["share"] == "0.40 (1 cell)" and rows["5.2.1"]["rival"] == f"a {rival} flow"


# Forms for other tools


def test_at_a_glance_a_cell_is_as_good_as_the_worse_of_its_verdicts(series):
    rank = ["violates", "error", "inconclusive", "unsupported", "compatible", "conforms", "not judged"]
    half_lost = {"interfaces": counted(2000, 1000)}
    made = measurements([0.0883] * 5, cell=Cell(10, 40, 4))
    lossy = heatmaps.all_series([as_read(m, evidence=half_lost) for m in made])
    for one in [*series, *lossy]:
        worst = {
            cell: min((h.results[cell].status for h in one.heatmaps if h.results[cell].verdict), key=rank.index)
            for cell in one.cells
            if any(h.results[cell].verdict for h in one.heatmaps)
        }
        assert one.count() == collections.Counter(status for status in worst.values() if status != "not judged")
        assert one.verdict == (min(worst.values(), key=rank.index) if worst else "not judged")
    assert any(one.verdict != one.utilization.verdict or one.count() != one.utilization.count() for one in lossy)


@pytest.mark.parametrize("said", ["=HYPERLINK(0)", "+1", "-1", "@SUM(A1)", "\t=1"])
def test_a_spreadsheet_takes_no_words_of_a_stack_for_a_formula(said):
    table = export.csv_bytes(heatmaps.all_series(measurements([0.5] * 5, stack_version=said))).decode()
    (row,) = csv.DictReader(io.StringIO(table, newline=""))
    assert (row["stack_version"], row["stack"]) == (f"'{said}", "linux-tcp")


def test_csv_parquet_and_summary_say_the_same(source, series):
    rows = list(csv.DictReader(io.StringIO(export.csv_bytes(series).decode(), newline="")))
    table = pyarrow.parquet.read_table(io.BytesIO(export.parquet_bytes(series))).to_pylist()
    document = json.loads(export.summary_json(series, source.files))
    assert len(rows) == len(table) == sum(len(s["metrics"]["utilization"]["cells"]) for s in document["schemes"])
    for text, typed in zip(rows, table, strict=True):
        for name, value in typed.items():
            assert text[name] == ("" if value is None else str(value)) or float(text[name]) == value, name
    one = next(r for r in table if r["stack"] == "linux-tcp" and r["cell"] == CELL.id and r["algorithm"] == "cubic")
    assert (one["utilization"], one["verdict"], one["trials"], one["lost_pct"]) == (
        0.42, "conforms", 5, pytest.approx(1.9),
    )  # fmt: skip
    failed = next(r for r in table if r["verdict"] == "error")
    assert failed["utilization"] is None and EVIL in failed["message"]


def test_the_summary_keeps_its_schema(source, series):
    document = json.loads(export.summary_json(series, source.files))
    schema.check("summary", document, "summary")
    with pytest.raises(UserError, match="/schemes/0/metrics"):
        document["schemes"][0]["metrics"]["utilization"]["verdict"] = "fine"
        schema.check("summary", document, "summary")


def test_markdown_names_every_scheme_and_what_does_not_conform(series):
    text = markdown.render(series)
    assert "`cubic/linux-tcp/6.12.0`" in text
    assert "| 10mbps-40ms-1pct | ✗ violates | utilization 0.920 |" in text
    # The text outside of code spans is the suite's own.
    assert "script" not in re.sub(r"(`+).*?\1", "", text)


@hypothesis.given(st.text(max_size=40))
def test_code_spans_hold_any_text(text):
    found = markdown.code(text)
    assert "\n" not in found
    assert "|" not in found.replace("\\|", "")
    if found:
        fence = len(found) - len(found.lstrip("`"))
        inside = found[fence:-fence]
        assert "`" * fence not in inside and found.endswith("`" * fence)


def test_a_badge_counts_the_verdicts_and_no_failed_trial_hides_a_violation(series):
    document = json.loads(badge.endpoint(heatmaps.Drawn(series=series)))
    assert document["schemaVersion"] == 1 and not document["isError"]
    assert document["message"].startswith("1 violates, 1 error, ")
    failed = [dataclasses.replace(m, outcome=Outcome.ERROR, message="as asked") for m in measurements([0.5] * 5)]
    assert json.loads(badge.endpoint(heatmaps.drawn(failed)))["isError"]
    one = heatmaps.Drawn(series=[of(series, "newalgo")])
    assert json.loads(badge.endpoint(one))["label"] == "newalgo conformance"
    assert json.loads(badge.endpoint(one))["message"] == "not judged"
    evil = [of(series, stack=f"evil{EVIL}")]
    evil = heatmaps.Drawn(series=[dataclasses.replace(evil[0], utilization=dataclasses.replace(
        evil[0].utilization, scheme=dataclasses.replace(evil[0].scheme, algorithm=EVIL)))])  # fmt: skip
    assert b"<script" not in badge.svg(evil) and b"&lt;script" in badge.svg(evil)


def test_names_of_files_are_harmless_and_different(series):
    found = [slugs.of_series(s) for s in series]
    assert len(set(found)) == len(found)
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-") for name in found)
    assert slugs.of_name("cubic") == "cubic"
    assert slugs.of_name("../../cubic") != slugs.of_name("cubic")


def test_zones_of_another_profile_do_not_judge():
    other = setting(queue="fq_codel")
    (found,) = heatmaps.all_series([of_trial(m, setting=other) for m in measurements([0.4] * 5)])
    assert found.utilization.zone is None and found.utilization.verdict == "not judged"


def test_what_zones_of_other_metrics_say_is_in_every_report():
    """A gate that fails because of a queue or of a short transfer has no green badge."""
    cell = Cell(10, 20, 1)
    inside = documents.zone_of("cubic").intervals[cell].basis.median
    counters = counted(1000, round(1000 - 10 * documents.zone_of("cubic", "loss").intervals[cell].basis.median))
    good = [as_read(m, evidence={"interfaces": counters}) for m in measurements([inside] * 5, cell=cell)]
    assert badge.message(heatmaps.drawn(good)) == ("1 conforms, 1 not judged", "conforms")
    cell = documents.zone_of("cubic", "startup").cells[0]
    short = [
        dataclasses.replace(m, trial=dataclasses.replace(m.trial, setting=documents.profile("startup", cell)),
                            metrics={**measurement().metrics, **m.metrics})
        for m in measurements_of("transfer_rtts", [2.0] * 8, cell=cell)
    ]  # fmt: skip
    found = heatmaps.all_series([*good, *short])
    (series,) = [s for s in found if s.setting.profile == "startup"]
    assert (series.verdict, [h.metric for h in series.judged]) == ("violates", ["transfer_rtts"])
    assert badge.message(heatmaps.Drawn(series=found))[1] == "violates"
    assert "transfer: ✗ 1 violates" in markdown.render(found)
    assert export.summary(found, ()).schemes[-1].metrics["transfer_rtts"].verdict == "violates"
    row = next(row for row in export.rows(found) if row["profile"] == "startup")
    assert row["transfer_rtts"] == pytest.approx(2.0)
    assert (row["transfer_verdict"], row["queue_verdict"]) == ("violates", None)
    of_cells = [kind for kind in documents.all_kinds() if documents.marker(kind) not in documents.scenario_markers()]
    assert {metric.name for metric in tabled()} == {documents.metric_of(kind) for kind in of_cells}


def test_trials_whose_packets_are_kept_are_made_again_by_their_clause():
    setting_ = dataclasses.replace(documents.profile("atc25", CELL), packets=True)
    command, why_not = rerun.cell([of_trial(measurement(0.4), setting=setting_)])
    assert command is None and "conformance clause run" in why_not
    usual = documents.profile("atc25", CELL)
    assert rerun._differences(setting_, usual) == rerun._differences(usual, setting_).replace("None", "True")


def test_recorded_clauses_are_shown_of_the_schemes_of_the_report_alone():
    one = next(one for one in clause_record.load() if one.clause == "CL001" and "/quinn/" in one.scheme)
    algorithm, stack, version = one.scheme.split("/")
    names = {scheme(algorithm, stack=stack, stack_version=version): "it"}
    assert {known.id for known in names} == {one.scheme}
    rows = [
        row
        for answer in rfc9743.answers([], names)
        for table in answer.tables
        for row in table.rows
        if "recorded verdict" in table.columns
    ]
    assert rows and {row.scheme for row in rows} == {one.scheme}
    assert not any(answer.tables for answer in rfc9743.answers([], {scheme("cubic", stack="mine"): "mine"}))
