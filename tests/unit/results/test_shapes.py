"""Checks of lines other than the first of their kind, which alone meets the whole schema: readers can use them."""

import dataclasses
import json

import pytest
from helpers import measurement, of_trial, replaced, shared_measurement

from conformance.catalogue import scenarios
from conformance.model.errors import UserError
from conformance.model.networks.place import Point
from conformance.results import store


def shared(seed):
    """Return a measurement of flows that share a network."""
    made = measurement(seed=seed).trial
    setting = scenarios.setting("fairness", Point.parse("flows=2"))
    return shared_measurement(dataclasses.replace(made, setting=setting))


def read(tmp_path, first, changed):
    path = tmp_path / "results.jsonl"
    path.write_text("\n".join(map(json.dumps, (first, changed))) + "\n")
    return store.read(path)


@pytest.mark.parametrize(
    ("pointer", "value", "words"),
    [
        ("/flows/0/goodput_mbps", "x", "/flows/0/goodput_mbps is 'x', not a number"),
        ("/flows/0/goodput_mbps", -5, "/flows/0/goodput_mbps is -5, less than zero"),
        ("/metrics/bytes", -1, "/metrics/bytes is -1, less than zero"),
        ("/flows/0/bytes", [1], "/flows/0/bytes is .1., not a number"),
        ("/flows/0/group", 7, "/flows/0/group: 7 is not of type 'string'"),
        ("/flows/0/rtt_ms", {"p50": "x"}, "/flows/0/rtt_ms/p50 is 'x', not a number"),
        ("/flows/0/goodput_series_mbps", [1.0, "x"], "/flows/0/goodput_series_mbps/1: 'x' is not of type 'number'"),
        ("/links/0/out_series_mbps", [None, 1.5], None),
        ("/links/0/out_bytes", 10**39, "too large for an exact number"),
        ("/metrics/utilization", 10**39, "too large for an exact number"),
        ("/flows/0/utilization", 9e9, "/flows: utilization is 9000000000.45, more than 10"),
        ("/evidence", {"qdiscs": "x"}, "/evidence/qdiscs is 'x', not a list"),
        ("/evidence", {"qdiscs": [5]}, "/evidence/qdiscs/0 is 5, not an object"),
        ("/evidence", {"tcp_info": []}, r"/evidence/tcp_info is \[\], not an object"),
        ("/evidence", {"trace": {"t_s": ["x"]}}, "/evidence/trace/t_s is not a list of numbers"),
        ("/evidence", {"something": "of a later version"}, None),
    ],
)
def test_a_value_that_is_not_what_its_name_says_is_named(tmp_path, pointer, value, words):
    first, second = (shared(seed).to_json() for seed in (1, 2))
    changed = replaced(second, [int(step) if step.isdigit() else step for step in pointer.split("/")[1:]], value)
    if words is None:
        assert len(read(tmp_path, first, changed)) == 2
        return
    with pytest.raises(UserError, match=rf"results\.jsonl:2: .*{words}") as refused:
        read(tmp_path, first, changed)
    assert "Error: " not in str(refused.value)


def test_what_a_record_lacks_is_named(tmp_path):
    first, second = (shared(seed).to_json() for seed in (1, 2))
    del second["flows"][0]["goodput_mbps"]
    with pytest.raises(UserError, match=r"results\.jsonl:2: .*/flows/0.*goodput_mbps"):
        read(tmp_path, first, second)


@pytest.mark.parametrize("name", ["stack", "stack_version", "kernel_release", "algorithm"])
@pytest.mark.parametrize("character", ["\x1b", "\n", "\u202e", "\x9b", "\u061c", "\u2028", "\u2029"])
def test_a_scheme_has_no_control_characters(tmp_path, name, character):
    made = measurement()
    scheme = dataclasses.replace(made.trial.scheme, **{name: f"x{character}y"})
    line = of_trial(made, scheme=scheme).to_json()
    with pytest.raises(UserError, match=rf"results\.jsonl:1: .*/trial/scheme/{name}"):
        read(tmp_path, line, line)


def test_what_is_as_it_should_be_is_read(tmp_path):
    assert len(read(tmp_path, shared(1).to_json(), shared(2).to_json())) == 2


def test_a_cell_is_not_used_beyond_what_it_can_carry(tmp_path):
    with pytest.raises(UserError, match=r"results\.jsonl:2: /flows: utilization is 11\.5, more than 10$"):
        read(tmp_path, measurement(0.5, 1).to_json(), measurement(11.5, 2).to_json())


@pytest.mark.parametrize("name", ["stack", "stack_version", "kernel_release", "algorithm"])
def test_a_scheme_has_no_name_without_end(tmp_path, name):
    made = measurement()
    scheme = dataclasses.replace(made.trial.scheme, **{name: "x" * 200_000})
    line = of_trial(made, scheme=scheme).to_json()
    with pytest.raises(UserError, match=rf"results\.jsonl:1: /trial/scheme/{name}: .* is too long") as refused:
        read(tmp_path, line, line)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("pointer", ["/message", "/trial/lab_digest"])
@pytest.mark.parametrize("second", [False, True])
def test_no_text_is_without_end(tmp_path, pointer, second):
    good = measurement(seed=1).to_json()
    bad = replaced(measurement(seed=2).to_json(), pointer.split("/")[1:], "x" * 200_000)
    with pytest.raises(UserError, match=rf"{pointer}") as refused:
        read(tmp_path, good if second else bad, bad)
    assert len(str(refused.value)) < 500
