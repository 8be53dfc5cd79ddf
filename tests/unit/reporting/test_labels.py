"""Two builds of one version in one report can be told apart by digits, which the footer also has."""

from helpers import measurements, shown, stored

from conformance.model.trials.trial import Outcome
from conformance.reporting import heatmaps, naming, rerun
from conformance.reporting.html import compare, site
from conformance.reporting.text import markdown, terminal
from conformance.results import source

ONE, OTHER = "a1b2c3d4" + "0" * 8, "e5f6a7b8" + "0" * 8


def quinn(digest, **changes):
    return measurements([0.4] * 5, stack="quinn", stack_version="quinn 0.11.12", stack_digest=digest, **changes)


def test_builds_of_one_version_are_labelled_by_their_stack_s_digest(tmp_path):
    measured = (*quinn(ONE), *quinn(OTHER), *measurements([0.4] * 5))
    found = source.Source([stored(tmp_path / "results.jsonl", measured)])
    series = heatmaps.all_series(found.measurements)
    assert set(naming.labels(one.scheme for one in series).values()) == {
        "cubic/linux-tcp/6.12.0", "cubic/quinn/0.11.12 (a1b2c3d4)", "cubic/quinn/0.11.12 (e5f6a7b8)",
    }  # fmt: skip
    (section,) = compare.sections(series)
    assert section.names == ("linux-tcp", "quinn on 6.12.0 (a1b2c3d4)", "quinn on 6.12.0 (e5f6a7b8)")
    text = shown(terminal.show, series, width=120)
    site.write(found, tmp_path / "site")
    pages = [path.read_text() for path in (tmp_path / "site").glob("cubic-quinn-*.html")]
    for digest in (ONE, OTHER):
        label = f"cubic/quinn/0.11.12 ({digest[:8]})"
        assert label in text
        assert f"`{label}`" in markdown.render(series)
        assert any(label in page and f"digest {digest}" in page for page in pages)
        assert digest[:8] in (tmp_path / "site" / "index.html").read_text()


def test_kernels_of_one_release_are_labelled_by_their_digests(tmp_path):
    measured = [*measurements([0.4] * 5, kernel_digest=ONE), *measurements([0.4] * 5, kernel_digest=OTHER)]
    series = heatmaps.all_series(measured)
    found = {"cubic/linux-tcp/6.12.0 (kernel a1b2c3d4)", "cubic/linux-tcp/6.12.0 (kernel e5f6a7b8)"}
    assert set(naming.labels(one.scheme for one in series).values()) == found
    summary = markdown.render(series)
    assert all(label in summary for label in found)
    front = site.write(source.Source([stored(tmp_path / "results.jsonl", measured)]), tmp_path / "site").read_text()
    assert all(f"v1 (kernel {digest[:8]}); Linux 6.12.0" in front for digest in (ONE, OTHER))


def test_builds_of_one_digest_are_told_apart_by_what_else_differs():
    series = heatmaps.all_series([*quinn(ONE), *quinn(ONE, lab_digest="8" * 16)])
    (section,) = compare.sections(series)
    assert len(set(section.names)) == 2
    assert all(name.startswith("quinn on 6.12.0 (a1b2c3d4)") for name in section.names)
    assert set(naming.labels(one.scheme for one in series).values()) == {"cubic/quinn/0.11.12"}


def test_builds_with_working_trees_are_called_after_them():
    """The tree's state is in the label, the comparison and JSON's version; the command says where to put a tree."""
    builds = [
        measurements(
            [0.4] * 5, stack="quinn", stack_version=f"quinn 0.11.12, quinn-udp 0.5.16; with {tree}; client h3-client",
            stack_digest=digest,
        )
        for tree, digest in (("quinn-proto@1a2b3c", ONE), ("quinn-proto@4d5e6f, h3@0a0b0c", OTHER))
    ]  # fmt: skip
    series = heatmaps.all_series([m for made in builds for m in made])
    assert set(naming.labels(one.scheme for one in series).values()) == {
        "cubic/quinn/0.11.12+quinn-proto@1a2b3c", "cubic/quinn/0.11.12+quinn-proto@4d5e6f+h3@0a0b0c",
    }  # fmt: skip
    (section,) = compare.sections(series)
    assert section.names == ("quinn+quinn-proto@1a2b3c", "quinn+quinn-proto@4d5e6f+h3@0a0b0c")
    command, _ = rerun.cell(builds[1])
    assert "--stack quinn --source quinn-proto=path/to/quinn-proto --source h3=path/to/h3" in command
    assert "--source" not in rerun.cell(quinn(ONE))[0]


def test_of_many_schemes_the_terminal_has_a_line_each():
    made = [m for n in range(6) for m in quinn(f"{n}" * 16)]
    text = shown(terminal.show, heatmaps.all_series(made))
    assert text.count("\n") == 6 == text.count("cubic/quinn/0.11.12 (")


def test_the_terminal_says_what_its_marks_mean():
    text = shown(terminal.show, heatmaps.all_series(measurements([0.05] * 5)))
    assert "✗ violates: the median is outside, " in text
    assert "compatible:" not in text


def test_the_terminal_says_which_median_is_a_bound():
    made = measurements([0.3] * 5, outcome=Outcome.TIMEOUT)
    assert "\N{LESS-THAN OR EQUAL TO}0.30" in shown(terminal.show, heatmaps.all_series(made))
