"""Studies: what their documents say, which documents are refused, and what results say about their claims."""

import copy
import dataclasses
import json

import helpers
import pytest

from conformance.catalogue import studies
from conformance.model.errors import UserError
from conformance.model.networks.place import Cell
from conformance.model.studies import outcome, study_results
from conformance.model.studies.claims import ClaimVerdict, NotSeen
from conformance.model.trials.trial import Measurement, Outcome, Trial

SCENARIO = {
    "name": "two", "title": "two groups", "timeout_s": 10,
    "links": [helpers.link(acks={})],
    "flows": [
        {"name": "test", "sender": "kernel", "count": 2, "seconds": 5},
        {"name": "cubic", "sender": "kernel", "algorithm": "cubic", "seconds": 5, "judged": False},
    ],
    "axes": [
        {"name": "buffer_bdp", "sets": ["/links/0/data/queue/size"], "values": [1, 0.1, 10]},
        {"name": "flows", "sets": ["/flows/0/count"], "values": [2, 4]},
    ],
}  # fmt: skip
AT = {"scenario": "two", "algorithm": "bbrv1", "group": "test", "metric": "share"}
DOCUMENT = {
    "name": "made-up", "title": "a test", "source": {"title": "nothing", "published": "never"},
    "trials": {"smoke": 5, "full": 8},
    "scenarios": [
        SCENARIO,
        {"like": "two", "name": "slow", "title": "slower", "set": {"/links/0/data/rate_mbps": 1, "/axes/1": None}},
        "atc25",
    ],
    "experiments": [
        {"scenario": "two", "algorithms": ["bbrv1", "cubic"], "smoke": [{"buffer_bdp": 0.1}],
         "full": [{"buffer_bdp": [0.1, 1, 10]}]},
        {"scenario": "slow", "algorithms": ["bbrv1"], "full": [{}]},
        {"scenario": "atc25", "algorithms": ["cubic"], "full": [{"loss_pct": [0, 1]}]},
    ],
    "anchors": [
        {"name": "slower", "reason": "a test",
         "check": {"at": AT, "alike": {"sides": [{"scenario": "two"}, {"scenario": "slow"}], "points": 0.1}}}
    ],
    "claims": [
        {"id": "C1", "says": "about a half", "place": "1", "published": "0.5", "tolerance": "0.1", "figures": ["1"],
         "checks": [{"at": {**AT, "buffer_bdp": [0.1, 1]}, "within": {"about": 0.5, "points": 0.1}}]},
        {"id": "C2", "says": "more than CUBIC", "place": "1", "published": "more", "tolerance": "none",
         "anchors": ["slower"],
         "checks": [{"at": {"scenario": "two", "metric": "share", "algorithm": "bbrv1"},
                     "order": {"sides": [{"group": "test"}, {"group": "cubic"}]}}]},
        {"id": "C3", "says": "rises", "place": "1", "published": "rises", "tolerance": "none",
         "checks": [{"at": AT, "rises": {"along": "buffer_bdp", "values": [0.1, 1, 10]}}]},
        {"id": "C4", "says": "is lost", "place": "1", "published": "a curve", "not_judged": "lost in print"},
        {"id": "C5", "says": "falls with loss", "place": "1", "published": "falls", "tolerance": "none",
         "checks": [{"at": {"scenario": "atc25", "algorithm": "cubic", "metric": "utilization"},
                     "falls": {"along": "loss_pct", "values": [0, 1]}}]},
    ],
    "figures": [
        {"id": "1", "title": "share", "draws": "curves", "metric": "share", "group": "test", "x": "buffer_bdp",
         "lines": "algorithm", "at": {"scenario": "two", "algorithm": ["bbrv1", "cubic"], "buffer_bdp": [0.1, 1, 10]}}
    ],
}  # fmt: skip

_AT = {"scenario": "two", "algorithm": "bbrv1"}
_ROW = {"title": "one", "at": {"buffer_bdp": 1}}
_TABLE = {
    "id": "1", "title": "a table", "draws": "table", "at": {**_AT, "group": "test"}, "rows": [_ROW],
    "columns": [{"title": "share", "at": {"metric": "share"}}],
}  # fmt: skip


def read(tmp_path, document=None):
    path = tmp_path / "made-up.json"
    path.write_text(json.dumps(DOCUMENT if document is None else document))
    return studies.find(str(path))


def test_a_study_has_points_of_two_tiers(tmp_path):
    study = read(tmp_path)
    assert [point.words for point in study.points["smoke"]] == [
        "two, bbrv1, buffer_bdp=0.1,flows=2", "two, cubic, buffer_bdp=0.1,flows=2",
    ]  # fmt: skip
    assert study.points["full"][:2] == study.points["smoke"]
    assert len(study.points["full"]) == 9
    slow = next(point for point in study.points["full"] if point.scenario == "slow")
    assert study.setting(slow).cell.bandwidth_mbps == 1
    assert study.setting(study.points["full"][-1]).of_profile  # with the digest that it always had


@pytest.mark.parametrize(
    ("pointer", "value", "words"),
    [
        ("/claims/0/checks/0/at/buffer_bdp", 3, "/claims/0/checks/0/at: the study does not measure two, bbrv1"),
        ("/claims/0/checks/0/at/algorithm", "reno", "/claims/0/checks/0/at: the study does not measure two, reno"),
        ("/claims/0/checks/0/at/scenario", "three", "/claims/0/checks/0/at: the study has no scenario 'three'"),
        ("/claims/0/checks/0/at/group", "other", "/claims/0/checks/0/at: two has no group 'other'; it has test"),
        ("/claims/0/checks/0/at/metric", "speed", "/claims/0/checks/0/at: 'speed' is not one of the metrics"),
        ("/claims/0/checks/0/at/speed", 1, "/claims/0/checks/0/at: scenario two has no axis 'speed'"),
        ("/claims/0/checks/0/within", {"low": 2, "high": 1}, "/claims/0/checks/0/within: low is above high"),
        ("/claims/0/checks/0/within", {"about": 1}, "/claims/0/checks/0/within: "),
        ("/claims/1/checks/0/order/sides/1/group", "none", "/claims/1/checks/0/order/sides/1: two has no group"),
        ("/claims/1/anchors", ["faster"], "/claims/1/anchors/0: the study has no anchor 'faster'"),
        ("/claims/0/checks/0/anchors", ["x"], "/claims/0/checks/0/anchors/0: the study has no anchor 'x'"),
        ("/claims/0/figures", ["9"], "/claims/0/figures/0: the study has no figure '9'"),
        ("/claims/1/id", "C1", "/claims/1/id: two claims are called C1"),
        ("/claims/0/checks/0/at/metric", "harm_pct", "/claims/0/checks/0/at: harm_pct is known only with a zone"),
        ("/claims/2/checks/0/rises/along", "speed", "/claims/2/checks/0/rises/values/0: scenario two has no axis"),
        ("/experiments/0/full/0", {"speed": 1}, "/experiments/0/full/0: scenario two has no axis 'speed'"),
        ("/experiments/0/full/0", {"buffer_bdp": -1}, "/experiments/0/full/0: at this value: /links/0/data/queue/size"),
        ("/experiments/1/scenario", "fast", "/experiments/1/scenario: the study has no scenario 'fast'"),
        ("/scenarios/1/like", "none", "/scenarios/1: /like: no document of scenario 'none' precedes this one"),
        ("/scenarios/1/set", {"/links/7/name": "x"}, "/scenarios/1: /set/~1links~17~1name: the scenario has"),
        ("/scenarios/2", "atc99", "/scenarios/2: there is no scenario 'atc99'"),
        ("/scenarios/2", SCENARIO, "/scenarios/2: two scenarios are called two"),
        ("/anchors/0/check/at/metric", "speed", "/anchors/0/check/alike/sides/0: 'speed' is not one of the metrics"),
        ("/anchors", DOCUMENT["anchors"] * 2, "/anchors/1/name: two anchors are called slower"),
        ("/anchors/0/check/anchors", ["slower"], "/anchors/0/check/anchors: an anchor cannot rest on another"),
        ("/figures/0/x", "speed", "/figures/0: not all of its points have a coordinate 'speed'"),
        ("/figures/0/panels", ["speed"], "/figures/0: not all of its points have a coordinate 'speed'"),
        ("/figures/0/published", [{"x": 1, "value": 1, "panel": [3]}], "/figures/0/published/0/panel: the figure has"),
        ("/figures/0/at", [{**_AT, "buffer_bdp": 1}, {**_AT, "buffer_bdp": 7}], "/figures/0/at/1: the study does not"),
        ("/figures/0", _TABLE | {"rows": [_ROW | {"published": [1, 2]}]}, "/figures/0/rows/0/published: 2 values"),
        ("/figures/0", _TABLE | {"columns": [{"title": "a", "at": {"metric": "speed"}}]}, "/figures/0/rows/0: 'speed'"),
        ("/figures/0", _TABLE | {"panels": ["flows"]}, "/figures/0/panels: a figure that draws table does not take it"),
        ("/figures/0/rows", [_ROW], "/figures/0/rows: a figure that draws curves does not take it"),
        ("/trials/smoke", 0, "/trials/smoke"),
        ("/experiments/0/client", "No such", "/experiments/0/client"),
        ("/claims/0/checks/0/at/client", "own", "the study does not measure two, bbrv1 with client own"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_by_its_place(tmp_path, pointer, value, words):
    refused = helpers.refusal(read, tmp_path, helpers.pointed(DOCUMENT, pointer, value))
    assert words in refused and "made-up.json: " in refused


@pytest.mark.slow
@pytest.mark.parametrize("name", studies.files())
def test_studies_that_ship_can_be_read(name):
    study = studies.find(name)
    assert study.name == name
    assert study.points["smoke"], "a smoke tier measures something"
    assert any(claim.instances for claim in study.claims)


def measured(study, point, values, group="test", outcome=Outcome.OK, message=None):
    """Return measurements of a point in which a group has these shares of all goodput."""
    found = []
    for seed, value in enumerate(values, 1):
        trial = helpers.trial_at(study.setting(point), seed, helpers.scheme(point.algorithm))
        flows = [
            {"group": name, "judged": name == "test", "goodput_mbps": goodput}
            for name, goodput in ((group, value), ("cubic" if group == "test" else "test", 1 - value))
        ]
        found.append(Measurement(trial=trial, outcome=outcome, message=message, metrics={"bytes": 1}, flows=flows))
    return found


def test_claims_are_judged_by_what_was_measured(tmp_path):
    study = read(tmp_path)
    points = {point.words: point for point in study.points["full"]}
    first, second, third = (points[f"two, bbrv1, buffer_bdp={size},flows=2"] for size in (0.1, 1, 10))
    spread = (-0.02, -0.01, 0.0, 0.01, 0.02)
    known = {
        at: measured(study, at, [value + one for one in spread])
        for at, value in ((first, 0.45), (second, 0.55), (third, 0.9))
    }
    judgment = outcome.judge(study, known)
    verdicts = {claim.id: found.verdict for claim, found in judgment.claims}
    assert verdicts == {
        "C1": ClaimVerdict.REPRODUCED, "C2": ClaimVerdict.REPRODUCED, "C3": ClaimVerdict.REPRODUCED,
        "C4": ClaimVerdict.NOT_JUDGED, "C5": ClaimVerdict.NOT_JUDGED,
    }  # fmt: skip
    assert judgment.anchors["slower"].verdict is ClaimVerdict.NOT_JUDGED
    slow = next(point for point in study.points["full"] if point.scenario == "slow")
    far = outcome.judge(study, {**known, slow: measured(study, slow, [0.9] * 5)})
    assert far.anchors["slower"].verdict is ClaimVerdict.DIFFERS
    assert {claim.id: found.verdict for claim, found in far.claims}["C2"] is ClaimVerdict.NOT_JUDGED
    wrong = outcome.judge(study, {**known, first: measured(study, first, [0.95] * 5)})
    assert {claim.id: found.verdict for claim, found in wrong.claims}["C1"] is ClaimVerdict.DIFFERS


@pytest.mark.parametrize(
    ("kind", "words"),
    [(Outcome.UNSUPPORTED, "kernel bbrv2 is not built"), (Outcome.TIMEOUT, "took longer"), (Outcome.ERROR, "died")],
)
def test_what_failed_is_not_judged_and_says_why(tmp_path, kind, words):
    study = read(tmp_path)
    point = study.points["smoke"][0]
    found = outcome.seen(measured(study, point, [0.5] * 5, outcome=kind, message=words), "share", "test")
    assert found == NotSeen(words)


def test_what_a_kernel_does_not_say_is_missing_and_not_zero(tmp_path):
    study = read(tmp_path)
    point = study.points["smoke"][0]
    trials = measured(study, point, [0.5] * 5)
    lacking = [dataclasses.replace(one, flows=[{**flow, "goodput_mbps": None} for flow in one.flows]) for one in trials]
    assert isinstance(outcome.seen(lacking, "share", "test"), NotSeen)


def test_results_of_one_build_count_and_others_do_not(tmp_path):
    study = read(tmp_path)
    one, other, *_ = (point for point in study.points["full"] if point.algorithm == "bbrv1")
    old = measured(study, one, [0.1] * 5)
    new = [helpers.of_scheme(m, kernel_digest="9" * 16) for at in (one, other) for m in measured(study, at, [0.5] * 5)]
    found = study_results.of(study, [*new, *old])
    assert found.measured.keys() == {one, other}
    assert {m.trial.scheme.kernel_digest for ms in found.measured.values() for m in ms} == {"9" * 16}
    assert study_results.of(study, [*old, *helpers.measurements([0.5], cell=Cell(30, 20, 1))]).measured.keys() == {one}


def test_a_tier_costs_what_the_trials_of_its_points_took(tmp_path):
    study = read(tmp_path)
    one, other, *_ = study.points["full"]
    timed = {
        point: [dataclasses.replace(m, host={"wall_s": seconds}) for m in measured(study, point, [0.5] * 5)]
        for point, seconds in ((one, 2.0), (other, 3.0))
    }
    assert study_results.core_s(timed, study.points["full"]) == (2, 25.0)
    assert study_results.core_s(timed, [one]) == (1, 10.0)
    assert study_results.core_s({one: measured(study, one, [0.5])}, [one]) == (0, 0.0), "old lines do not say"
    silent = {one: [dataclasses.replace(m, host={"wall_s": None}) for m in measured(study, one, [0.5])]}
    assert study_results.core_s(silent, [one]) == (0, 0.0)


def with_a_kernel():
    """Return a study of which one point is measured on a kernel of its own."""
    own = {"scenario": "two", "algorithms": ["bbrv1"], "kernel": "fixed", "smoke": [{"flows": 4}], "full": []}
    return {**DOCUMENT, "experiments": [*DOCUMENT["experiments"], own]}


def test_an_experiment_may_ask_for_a_kernel(tmp_path):
    study = read(tmp_path, with_a_kernel())
    (point,) = (one for one in study.points["full"] if one.kernel is not None)
    assert (point.kernel, point.point.values) == ("fixed", (("buffer_bdp", 1), ("flows", 4)))
    assert " on kernel fixed, " in point.words
    # Points and settings are the same as without the kernel.
    plain = copy.deepcopy(with_a_kernel())
    del plain["experiments"][-1]["kernel"]
    without = read(tmp_path, plain)
    assert without.points["full"] == tuple(dataclasses.replace(one, kernel=None) for one in study.points["full"])
    assert [without.setting(one) for one in without.points["full"]] == list(map(study.setting, study.points["full"]))


def on_two_kernels(**at):
    """Return a study of which one point is measured on two kernels, with a claim about quantities at `at`."""
    two = with_a_kernel()
    two["experiments"].insert(0, {**two["experiments"][-1], "kernel": "gentle", "smoke": [], "full": [{"flows": 4}]})
    two["kernels"] = {"gentle": {"of": "default", "parameters": {"tcp_vegas.alpha": "1"}}}
    where = {"scenario": "two", "algorithm": "bbrv1", "group": "test", "metric": "share", "flows": 4, **at}
    two["claims"] = [{**two["claims"][0], "checks": [{"at": where, "within": {"low": 0}}]}]
    return two


def test_a_point_may_be_measured_on_several_kernels_and_is_on_the_first_unless_one_is_named(tmp_path):
    for named, meant in (({}, "gentle"), ({"kernel": "gentle"}, "gentle"), ({"kernel": "fixed"}, "fixed")):
        study = read(tmp_path, on_two_kernels(**named))
        (instance,) = study.claims[0].instances
        (quantity,) = instance.quantities
        assert [one.kernel for one in quantity.points] == [meant]
        assert quantity.points[0].coordinates()["kernel"] == meant
    assert study.variants["gentle"].of == "default"
    with pytest.raises(UserError, match=r"does not measure two, bbrv1 on kernel default, .*; add it to an experiment"):
        read(tmp_path, on_two_kernels(kernel="default"))


def test_results_of_a_point_with_a_kernel_are_those_of_that_kernel_and_change_no_others(tmp_path):
    study = read(tmp_path, with_a_kernel())
    (own,) = (one for one in study.points["full"] if one.kernel == "fixed")
    usual = [one for one in study.points["full"] if one.algorithm == "bbrv1" and one != own]

    def on(kernel, digest, point):
        made = measured(study, point, [0.5] * 5)
        return [helpers.of_scheme(m, kernel=kernel, kernel_digest=digest) for m in made]

    default = [m for one in usual for m in on("default", "1" * 16, one)]
    fixed, older = on("fixed", "2" * 16, own), on("fixed", "3" * 16, own)
    elsewhere = on("default", "1" * 16, own)
    found = study_results.of(study, [*elsewhere, *older, *default, *fixed]).measured
    assert found.keys() == {own, *usual}
    assert list(found[own]) == fixed
    assert {m.trial.scheme.kernel for one in usual for m in found[one]} == {"default"}
    assert own not in study_results.of(study, [*elsewhere, *default]).measured
    # Trials on another point's kernel do not count for a point that asks for no kernel, however many there are.
    everywhere = [m for one in usual for m in on("fixed", "2" * 16, one)]
    assert usual[0] not in study_results.of(study, everywhere).measured
    found = study_results.of(study, [*on("default", "1" * 16, usual[0]), *everywhere]).measured
    assert {m.trial.scheme.kernel for m in found[usual[0]]} == {"default"}
    # Nor does what was measured on a variant of a user's own, where there are trials on the usual kernel.
    variant = [m for one in usual for m in on("gentle", "4" * 16, one)]
    found = study_results.of(study, [*on("default", "1" * 16, usual[0]), *variant]).measured
    assert {m.trial.scheme.kernel for one in found for m in found[one]} == {"default"}
    assert study_results.of(study, variant).measured.keys() == set(usual)


PATHS = {"scenario": "atc25", "algorithm": "cubic", "metric": "split_paths"}


def predicting(at, *experiments):
    """Return a study with a claim about a prediction at `at`."""
    claim = {**DOCUMENT["claims"][0], "figures": [], "checks": [{"at": at, "within": {"low": 0}}]}
    return {**DOCUMENT, "experiments": [*DOCUMENT["experiments"], *experiments], "claims": [claim]}


def test_a_prediction_is_made_from_the_points_of_one_kernel(tmp_path):
    slow = {"scenario": "atc25", "algorithms": ["cubic"], "kernel": "slow", "full": [{"loss_pct": [0, 1]}]}
    for named, meant in (({}, None), ({"kernel": "slow"}, "slow")):
        study = read(tmp_path, predicting({**PATHS, **named}, slow))
        (quantity,) = study.claims[0].instances[0].quantities
        assert {point.kernel for point in quantity.points} == {meant} and len(quantity.points) == 2
    assert "no points of atc25, cubic" in helpers.refusal(read, tmp_path, predicting({**PATHS, "kernel": "fast"}, slow))


def test_a_prediction_asks_for_one_point_of_each_cell_and_for_numbers(tmp_path):
    with pytest.raises(UserError, match="gain_above: 'x' is not a number"):
        read(tmp_path, predicting({**PATHS, "gain_above": "x"}))
    with pytest.raises(UserError, match="two has several points of one cell"):
        read(tmp_path, predicting({**PATHS, "scenario": "two"}))


def with_a_client():
    """Return a study with a point that is also measured with the stack's own client, and a claim about both clients."""
    own = {"scenario": "atc25", "stacks": ["aioquic"], "algorithms": ["cubic"], "smoke": [{}], "full": []}
    claim = {
        "id": "C6", "says": "the common client is faster", "place": "1", "published": "faster", "tolerance": "none",
        "checks": [{"at": {"scenario": "atc25", "stack": "aioquic", "algorithm": "cubic", "metric": "utilization"},
                    "order": {"sides": [{"client": "common"}, {"client": "own"}]}}],
    }  # fmt: skip
    experiments = [*DOCUMENT["experiments"], own, {**own, "client": "own", "full": []}]
    return {**DOCUMENT, "experiments": experiments, "claims": [*DOCUMENT["claims"], claim]}


def fetched(study, point, version, value):
    """Return measurements of a point by a stack that reports this version."""
    scheme = helpers.scheme(algorithm="cubic", stack="aioquic", stack_version=version)
    trials = [Trial(setting=study.setting(point), scheme=scheme, seed=n, room="v", lab_digest="1") for n in range(1, 6)]
    made = (Measurement(trial=one, outcome=Outcome.OK, metrics={"utilization": value}) for one in trials)
    return list(map(helpers.as_read, made))


def test_an_experiment_may_name_a_client_which_is_a_coordinate(tmp_path):
    study = read(tmp_path, with_a_client())
    common, own = (one for one in study.points["smoke"] if one.stack == "aioquic")
    assert (common.client, own.client) == ("common", "own")
    assert "cubic of aioquic with client own" in own.words
    assert study.setting(common) == study.setting(own)
    (claim,) = (claim for claim in study.claims if claim.id == "C6")
    assert [quantity.points for quantity in claim.instances[0].quantities] == [(common,), (own,)]


def test_an_experiment_may_have_trials_of_its_own_in_the_full_tier(tmp_path):
    study = read(tmp_path, helpers.pointed(DOCUMENT, "/experiments/0/trials", 12))
    own, other = study.points["smoke"][0], study.points["full"][-1]
    assert (study.trials_at(own, "full"), study.trials_at(own, "smoke")) == (12, 5)
    assert study.trials_at(other, "full") == 8


def test_results_of_a_client_are_those_of_points_that_name_it(tmp_path):
    study = read(tmp_path, with_a_client())
    common, own = (one for one in study.points["smoke"] if one.stack == "aioquic")
    lines = [
        *fetched(study, common, "aioquic 1.7.2; client h3-client (x)", 0.9), *fetched(study, own, "aioquic 1.7.2", 0.5),
    ]  # fmt: skip
    found = study_results.of(study, lines).measured
    assert {point: {one.utilization for one in ms} for point, ms in found.items()} == {common: {0.9}, own: {0.5}}
    verdicts = {claim.id: judged.verdict for claim, judged in outcome.judge(study, found).claims}
    assert verdicts["C6"] is ClaimVerdict.REPRODUCED
    # If no experiment names a client, whichever client fetched counts as the common one.
    usual = with_a_client()
    del usual["experiments"][-1], usual["claims"][-1]
    study = read(tmp_path, usual)
    (only,) = (one for one in study.points["smoke"] if one.stack == "aioquic")
    assert study_results.of(study, lines[5:]).measured.keys() == {only}


def phased(at):
    """Return a study of one flow whose delivery has three phases, with a claim about quantities at `at`."""
    scenario = {
        **SCENARIO, "name": "steps", "delivery": True, "axes": [],
        "flows": [{"name": "test", "seconds": 9}],
        "schedule": [{"at_s": at_s, "link": "link", "set": {"loss_pct": 1}} for at_s in (3, 6)],
    }  # fmt: skip
    return {
        **DOCUMENT, "scenarios": [scenario], "anchors": [], "figures": [],
        "experiments": [{"scenario": "steps", "algorithms": ["cubic"], "smoke": [{}], "full": [{}]}],
        "claims": [
            {"id": "C1", "says": "falls", "place": "1", "published": "falls", "tolerance": "none",
             "checks": [{"at": {"scenario": "steps", "algorithm": "cubic", **at},
                         "falls": {"along": "phase", "values": [0, 1, 2]}}]}
        ],
    }  # fmt: skip


def delivered(study, rates, outcome=Outcome.OK):
    """Return measurements whose delivery has these rates in its phases; `rates` has a list for each trial."""
    (point,) = study.points["smoke"]
    made = []
    for seed, own in enumerate(rates, 1):
        phases = [{"mbps": rate} for rate in own]
        flow = {"group": "test", "judged": True, "delivery": {"whole": {"mbps": sum(own)}, "phases": phases}}
        (one,) = measured(study, point, [0.5], outcome=outcome)
        made.append(dataclasses.replace(helpers.of_trial(one, seed=seed), flows=(flow,)))
    return {point: made}


def test_a_claim_may_be_about_phases_of_a_delivery(tmp_path):
    study = read(tmp_path, phased({"metric": "delivered_mbps"}))

    def verdict(rates, **more):
        ((_, judged),) = outcome.judge(study, delivered(study, rates, **more)).claims
        return judged

    assert verdict([[3.0, 2.0, 1.0]] * 5).verdict is ClaimVerdict.REPRODUCED
    assert verdict([[1.0, 2.0, 3.0]] * 5).verdict is ClaimVerdict.DIFFERS
    short = verdict([[3.0, 2.0]] * 5)
    assert (short.verdict, short.why) == (ClaimVerdict.NOT_JUDGED, "a trial ended before that phase")
    assert verdict([[3.0, 2.0, 1.0]] * 5, outcome=Outcome.ERROR).verdict is ClaimVerdict.NOT_JUDGED


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ({"metric": "delivered_mbps", "phase": 3}, "there is no phase 3; choose 0 to 2"),
        ({"metric": "delivered_mbps", "phase": -1}, "there is no phase -1; choose 0 to 2"),
        ({"metric": "delivered_mbps", "phase": True}, "there is no phase True; choose 0 to 2"),
        ({"metric": "share", "phase": 0}, "share has no phases here; leave out phase, or give the scenario delivery"),
    ],
)
def test_a_phase_that_is_not_there_is_one_line(tmp_path, at, words):
    made = phased(at)
    made["claims"][0]["checks"] = [{"at": made["claims"][0]["checks"][0]["at"], "within": {"low": 0}}]
    refused = helpers.refusal(read, tmp_path, made)
    assert "/claims/0/checks/0/at: " in refused and words in refused
