"""The site's files: the same bytes for the same results, no network, no scripts, valid links, escaped text."""

import collections
import dataclasses
import html.parser
import pathlib
import re
import urllib.parse

import made_up_results
import pytest
from helpers import measurement, measurements, stored

from conformance import __version__
from conformance.catalogue import clause_record, clauses
from conformance.catalogue.clause_record import ClauseEntry
from conformance.model.errors import UserError
from conformance.model.judging.verdict import Status
from conformance.model.networks.place import Cell
from conformance.model.split import split_paths, split_rates
from conformance.model.trials.trial import Outcome
from conformance.reporting import charts, heatmaps
from conformance.reporting.html import clause_pages, compare, site, split_page
from conformance.results.source import Source

#: where a bug of Linux was mended: a link, of which nothing is fetched
_FIX = re.compile(r"https://git\.kernel\.org/linus/\w+")


class Page(html.parser.HTMLParser):
    """The ids, links and elements of a page, and its visible text."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.text, self.elements = [], [], [], collections.Counter()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.elements[tag] += 1
        assert not any(name.startswith("on") or name == "style" for name in found), (tag, found)
        if "id" in found:
            self.ids.append(found["id"])
        for name in ("href", "src"):
            if name in found:
                self.links.append(found[name])

    def handle_data(self, data):
        self.text.append(data)


def pages(folder):
    return {path: Page(path) for path in sorted(folder.glob("*.html"))}


def test_every_link_leads_to_a_place_in_the_folder(built):
    found = pages(built)
    assert len(found) >= 14
    for path, page in found.items():
        assert len(page.ids) == len(set(page.ids)), path
        for link in page.links:
            if link == "data:," or (_FIX.fullmatch(link) and path.name == "bugs.html"):
                continue
            file, _, anchor = urllib.parse.unquote(link).partition("#")
            target = built / file if file else path
            assert target.is_file() and target.parent in (built, built / "data"), (path.name, link)
            assert not anchor or anchor in found[target].ids, (path.name, link)


def test_pages_ask_nothing_of_a_network_and_run_nothing(built):
    for path in built.rglob("*"):
        if path.suffix in (".html", ".css", ".svg"):
            text = path.read_text()
            rest = re.sub(r"http://www\.w3\.org/\d+/(svg|xlink)", "", text)
            rest = _FIX.sub("", rest) if path.name == "bugs.html" else rest
            assert "http:" not in rest and "https:" not in rest and "url(" not in rest, path
            assert "<script" not in text and "javascript:" not in text, path
    for page in pages(built).values():
        assert not {"script", "iframe", "img", "object", "embed"} & set(page.elements)


def test_what_stacks_say_is_text_and_nothing_else(built):
    """EVIL is in a stack's name, its version, and an error's message."""
    seen = "".join("".join(page.text) for page in pages(built).values())
    assert "<script>alert('x')</script>" in seen
    assert "the server died: <script>" in seen
    assert not any("script" in path.name for path in built.iterdir() if "evil" not in path.name)


def test_same_results_same_bytes(results, built, tmp_path):
    again = site.write(Source([results]), tmp_path / "again").parent
    for path in sorted(built.rglob("*")):
        if path.is_file():
            assert path.read_bytes() == (again / path.relative_to(built)).read_bytes(), path.name


def test_provenance_is_on_every_page(built, results):
    (file,) = Source([results]).files
    for path, page in pages(built).items():
        text = "".join(page.text)
        assert f"cc-conformance {__version__}" in text, path
        assert "results.jsonl" in text and file.digest in text, path
        assert "7777777777777777" in text and "6666666666666666" in text, path  # lab and kernel
        assert "profile atc25: queue red" in text, path
        assert str(results.parent) not in text, path


def test_a_front_page_groups_by_algorithm_and_counts(built):
    text = " ".join("".join(Page(built / "index.html").text).split())
    assert "CUBIC as in RFC 9438" in text
    assert "1 violates, 1 error, 3 inconclusive, 1 conforms" in text
    assert "No zone judges this algorithm." in text  # for prague and newalgo


def test_a_count_of_those_without_violations_takes_in_clauses_and_counts_linux_apart(tmp_path):
    lines = [
        *measurements([0.42] * 8),
        *measurements([0.42] * 8, stack="other"),
        *measurements([0.42] * 8, stack="quinn"),
    ]
    folder = site.write(Source([stored(tmp_path / "results.jsonl", lines)]), tmp_path / "site").parent
    text = (folder / "index.html").read_text()
    assert (
        "Zones judge 2 implementations: 2 without a violation or doubt, of which 1 violates a clause on record" in text
    )
    assert "counted apart: of 1, 1 without a violation or doubt, of which 1 violates a clause on record" in text
    of = {stack: next(folder.glob(f"cubic-{stack}-????????.html")).read_text() for stack in ("linux-tcp", "other")}
    assert "Zones find nothing against it" in of["linux-tcp"] and "1 clause</a> of RFCs" in of["linux-tcp"]
    assert "Nothing was found against it" in of["other"]


def test_a_violation_of_clauses_alone_is_counted_apart(tmp_path):
    """The draft judges BBRv3 before zones do; this stack violates clauses on record, and not this cell."""
    lines = measurements([0.85] * 8, algorithm="bbrv3", stack="ngtcp2-1.11")
    front = site.write(Source([stored(tmp_path / "results.jsonl", lines)]), tmp_path / "site").read_text()
    text = " ".join(front.split())
    assert "0 with a violation, 1 that only clauses find in violation, and 0 undecided" in text


def test_a_pill_says_what_it_counts_and_the_algorithms_people_look_for_come_first(built):
    text = (built / "index.html").read_text()
    table = text[text.index('<table class="overview">') :].partition("</table>")[0]
    assert re.findall(r'<th scope="col"><a href="#\d+">(\w+)', table) == ["cubic"]  # no zone judges the others
    assert re.search(r'class="chip against">.*utilization violates 1/6<', table)
    assert "2 more algorithms, which no zone judges: newalgo, prague" in text
    first = sorted(["bbrv1", "vegas", "bbrv3", "reno", "bbrv2", "cubic"], key=site._place)
    assert first == ["cubic", "reno", "bbrv3", "bbrv2", "bbrv1", "vegas"]


def test_cells_have_one_name(built):
    for path, page in pages(built).items():
        text = " ".join("".join(page.text).split())
        assert not re.search(r"\d Mbit/s, \d+ ms|\d ms, \d(\.\d)? % loss", text), path.name


def test_clauses_have_pages_by_stack_and_by_document_with_packets(built):
    (violation, *_) = [
        one
        for one in clause_record.load()
        if (one.who, one.algorithm, one.verdict) == ("linux-tcp", "cubic", "violates")
    ]
    seen = f"seed {violation.seen.seed}, packet {violation.seen.packet}, at "
    clause = clauses.find(violation.clause)
    (document,) = [one for one in clauses.specifications() if one.name == clause.specification]
    by_document = Page(built / clause_pages.of_document(document))
    assert clause.id in by_document.ids and seen in "".join(by_document.text)
    by_stack = Page(built / "clauses-of-linux-tcp.html")
    assert seen in "".join(by_stack.text)
    assert f"{clause_pages.of_document(document)}#{clause.id}" in by_stack.links
    (scheme,) = (p for p in built.glob("cubic-linux-tcp-*.html") if "mbps" not in p.name)
    for page in (scheme, built / "index.html", built / "clauses.html"):
        assert "clauses-of-linux-tcp.html" in {link.partition("#")[0] for link in Page(page).links}, page.name
    assert not list(built.glob("clauses-of-quinn*"))  # it was not measured for this report


def test_a_pill_of_clauses_counts_the_decided_ones():
    clause = clauses.find("CL001")

    def part(*verdicts):
        entries = [
            ClauseEntry(
                who="x", clause=clause.id, scheme="reno/x/1", reason="", interval=None, trials=5, seen=None,
                verdict=Status.INCONCLUSIVE if v == "hidden" else Status(v), value=None if v == "hidden" else 1.0,
            )
            for v in verdicts
        ]  # fmt: skip
        return clause_pages.Part(rows=tuple(clause_pages.ClauseRow(clause=clause, entry=one) for one in entries))

    assert part("conforms", "violates", "error", "hidden").words == "violates 1/2"
    assert part("conforms", "inconclusive").words == "conforms 1/1"
    assert (part("hidden", "hidden").worst, part("hidden", "hidden").words) == ("not visible", "not visible 2")


def test_what_was_not_seen_is_said_and_not_drawn(built):
    (quick,) = built.glob("cubic-quick-*-10mbps.html")
    text = quick.read_text()
    assert text.count("not known: only Linux TCP reports its round-trip time") == 1
    assert "Throughput, with headers and retransmissions" in text
    (linux,) = built.glob("cubic-linux-tcp-*-10mbps.html")
    assert "not recorded by the version of the suite that measured this" in linux.read_text()


def test_a_cell_shows_its_trials_and_how_to_make_them_again(built):
    (linux,) = built.glob("cubic-linux-tcp-*-10mbps.html")
    text = "".join(Page(linux).text)
    run = "conformance run cubic --grid 10mbps-20ms-1pct --trials 5 --first-seed 1 --stack linux-tcp --kernel default"
    assert run in text
    assert "conformance trace cubic 10mbps-20ms-1pct --seed 1" in text
    assert "median trial (seed 1)" in text and "lowest utilization (seed 5)" in text
    assert "The median trial (seed 1), with packets" in text
    assert re.search(r"10mbps-20ms-1pct \S+ utilization: ", text)
    for value in ("0.4200", "0.4100", "0.4300", "0.4400", "0.4000"):
        assert value in text


def test_a_folder_that_cannot_be_written_is_one_line(results, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write .*; choose another --out"):
        site.write(Source([results]), tmp_path / "file" / "site")


def test_made_up_lines_are_read_like_real_ones(tmp_path):
    path = tmp_path / "synthetic.jsonl"
    lines = list(made_up_results.synthetic(1))
    assert len(lines) == 1500
    path.write_bytes(b"".join(lines[:40]))
    front = site.write(Source([path]), tmp_path / "site")
    assert front.stat().st_size < 2_000_000
    assert pathlib.Path(front).name == "index.html"


def test_a_grid_of_cells_has_a_page_of_predictions_for_proxies(tmp_path):
    """The numbers equal those that the model gives here."""
    path = tmp_path / "synthetic.jsonl"
    path.write_bytes(b"".join(line for line in made_up_results.synthetic(1) if b'"bandwidth_mbps":10,' in line))
    source = Source([path])
    folder = site.write(source, tmp_path / "site").parent
    series = heatmaps.all_series(source.measurements)[0]
    rates = split_rates.Rates.medians({cell: r.measurements for cell, r in series.utilization.results.items()})
    predictions = [split_rates.predict(p, rates) for p in split_paths.paths(series.cells)]
    passed = sum(split_rates.FILTERS[0].passes(p) is True for p in predictions)
    found = split_page.of_series([series])[0]
    assert found.paths == len(predictions) == 315
    assert found.counts[0][:3] == (split_rates.FILTERS[0].title, found.counts[0][1], passed)
    assert sum(found.counts[0][1]) == passed > 0
    assert found.unknown == 0
    result = series.utilization.results[Cell(10, 1, 4)]
    failed = tuple(dataclasses.replace(m, outcome=Outcome.FAILED) for m in result.measurements)
    series.utilization.results[Cell(10, 1, 4)] = dataclasses.replace(result, measurements=failed)
    found = split_page.of_series([series])[0]
    assert 0 < found.unknown <= sum(Cell(10, 1, 4) in p.cells for p in split_paths.paths(series.cells))
    page = Page(folder / "split.html")
    assert re.search(r"paths</th><th[^>]*>unknown<", (folder / "split.html").read_text())
    assert f"{passed}" in page.text and "II" in page.text
    assert "split.html" in Page(folder / "index.html").links


def test_without_the_cells_for_paths_there_is_no_such_page(built):
    assert not (built / "split.html").exists()
    assert "split.html" not in Page(built / "index.html").links


def test_no_control_character_reaches_a_page_or_the_library_that_draws(tmp_path):
    """A control character would make the library end the process."""
    evil = "a\x1b[31mb\u202ec"
    failed = dataclasses.replace(measurement(cell=Cell(10, 40, 1)), outcome=Outcome.ERROR, metrics={}, message=evil)
    kept = stored(tmp_path / "results.jsonl", (*measurements([0.4] * 5), failed))
    folder = site.write(Source([kept]), tmp_path / "site").parent
    for page in folder.glob("*.html"):
        assert not {"\x1b", "\u202e"} & set(page.read_text())
    series = heatmaps.all_series(m for stack in (evil, "quinn") for m in measurements([0.4] * 5, stack=stack))
    (section,) = compare.sections(series)
    assert r"a\x1b[31mb\u202ec" in charts.svg(charts.comparison(section))
