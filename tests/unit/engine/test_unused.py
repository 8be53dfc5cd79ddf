"""Stored results of other kernels are named before a run; a comparison of two kernels does not mention them."""

import dataclasses

import pytest
from helpers import measurement, of_trial, scheme, setting

from conformance.engine import unused
from conformance.engine.benches import Bench, Choice
from conformance.model.errors import UserError
from conformance.model.judging.session import plan
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Outcome
from conformance.results.store import Store
from conformance.support.console import mistake

HERE = {"kernel_release": "7.2.11", "kernel_digest": "a" * 16}


class FakeBench(Bench):
    def scheme(self, algorithm):
        return scheme(algorithm, **(HERE if algorithm != "bbrv2" else {"kernel_digest": ""}))


@pytest.fixture
def bench():
    return FakeBench(adapter=None, place=None, lab_digest="7" * 16, choice=Choice())


@pytest.fixture
def said(tmp_path, bench):
    """Return a function that stores measurements and returns what is said before five trials of each algorithm."""

    def lines(made, *algorithms, first_seed=1, named=False):
        store = Store(tmp_path / "results.jsonl")
        for one in made:
            store.add(one)
        work = [(algorithm, setting()) for algorithm in algorithms or ("cubic",)]
        return list(unused.lines(plan(trials=5, first_seed=first_seed, work=work), bench, store, named=named))

    return lines


def trials(n=5, **changes):
    return [measurement(seed=seed, **changes) for seed in range(1, n + 1)]


def test_results_of_another_kernel_are_counted_and_both_are_named(said):
    assert said(trials()) == ["guest kernel Linux 7.2.11; 5 stored results of Linux 6.12.0 are not used"]


def test_a_kernel_that_was_built_anew_is_told_by_its_digest(said):
    line = "guest kernel Linux 7.2.11 (aaaaaaaa); 5 stored results of Linux 7.2.11 (66666666) are not used"
    assert said(trials(kernel_release="7.2.11")) == [line]


def test_several_kernels_share_a_line(said):
    made = [*trials(), *trials(2, kernel_release="6.1.9", kernel_digest="1" * 16)]
    (line,) = said(made)
    assert line.endswith("; 5 stored results of Linux 6.12.0 and 2 stored results of Linux 6.1.9 are not used")


@pytest.mark.parametrize(
    "changes",
    [
        HERE,  # used
        {"stack": "quinn"},
        {"cell": Cell(10, 40, 1)},  # not asked for
        {"algorithm": "reno"},
        {"kernel_digest": "", "kernel_release": "not-built", "outcome": Outcome.UNSUPPORTED},
    ],
)
def test_nothing_is_said_of_what_no_kernel_keeps_from_being_used(said, changes):
    assert said(trials(**changes)) == []


@pytest.mark.parametrize("changes", [{"stack_digest": "e" * 16}, {"lab_digest": "8" * 16}])
def test_results_of_another_build_or_lab_are_counted_if_there_are_no_others(said, tmp_path, changes):
    """The last job of a pipeline measured anew, or judged another build than the shards did, without a word."""
    file = tmp_path / "results.jsonl"
    line = f"5 stored results in {file} not used: another build of the stack or version of the suite made them"
    assert said(trials(**changes)) == [line]
    assert said(trials(1, **HERE)) == []


def test_nothing_is_said_of_other_seeds_or_of_a_kernel_that_is_not_built(said):
    assert said(trials(), first_seed=101) == []
    assert said(trials(algorithm="bbrv2"), "bbrv2") == []


def test_each_algorithm_counts_by_its_own_kernel(said):
    made = [*trials(), *trials(algorithm="reno"), *trials(algorithm="bbrv2")]
    (line,) = said(made, "cubic", "reno", "bbrv2")
    assert "; 10 stored results of Linux 6.12.0 are" in line


def test_a_release_is_shown_in_one_line_whatever_the_file_says(said):
    with pytest.raises(UserError, match="/trial/scheme/kernel_release") as error:
        said([dataclasses.replace(m) for m in trials(kernel_release="6\n\x1b[31mevil")])
    assert "\n" not in mistake(error.value) and "\x1b" not in mistake(error.value)


def test_kernels_of_other_names_may_be_others_on_purpose(said):
    made = [*trials(), *trials(3, kernel="cubic-beta-high", kernel_digest="1" * 16)]
    (line,) = said(made, named=True)
    assert line.endswith("; 5 stored results of Linux 6.12.0 are not used")


def test_results_of_a_program_that_was_not_found_are_measured_again(said, tmp_path):
    """What `describe` printed used to be taken for a version where the user's PATH lacked the stack's server."""
    here = dataclasses.replace(scheme("cubic", **HERE), stack_version="linux-tcp: 38: nginx: not found, OpenSSL 3.0.19")
    made = [of_trial(one, scheme=here) for one in trials(2)]
    said(made)
    file = tmp_path / "results.jsonl"
    line = f'2 stored results in {file} not used: the version of the stack in them is "not found"'
    assert said([]) == [line]
    assert Store(file).find(made[0].trial) is None
    good = dataclasses.replace(here, stack_version="nginx/1.22.1, OpenSSL 3.0.19")
    again = of_trial(made[0], scheme=good)
    said([again])
    assert Store(file).find(made[0].trial) == again
