"""The documents: all that they link to or name exists, their lines wrap, and the index leads to every page."""

import json
import re

import pytest

from conformance.catalogue import documents, studies
from conformance.cli import main
from conformance.model.clauses import changes
from conformance.reporting.html import rfc9743_criteria
from conformance.support import paths

ROOT = paths.PACKAGE.parent
PAGES = sorted(
    (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("zones/*.md"), *ROOT.glob("conformance/**/*.md"))
)
#: most columns of a line of prose without its links, as docs/style.md asks
_WIDEST = 100
#: folders whose files are named by path in prose
_FOLDERS = "conformance|docs|tests|zones|adapters|topologies|mutants|examples|reports"
_PATH = re.compile(rf"(?<![\w./-])(?:{_FOLDERS})/[\w./*-]*\.\w+")
#: words that stand for any name in a path
_ANY = re.compile(r"ALGORITHM|NAME|STACK|FILE")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def prose(text):
    """Yield (number, line) of every line; lines of code and of tables are empty."""
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        fence = line.lstrip().startswith("```")
        code ^= fence
        yield number, "" if code or fence or line.lstrip().startswith("|") else line


def anchors(text):
    """Return the anchors that GitHub makes of the headings of a page."""
    heads = [line.lstrip("#").strip().lower() for _, line in prose(text) if re.match(r"#+ ", line)]
    return {re.sub(r"[^\w\- ]", "", head).replace(" ", "-") for head in heads}


def broken_links(page):
    """Yield the links of a page that lead to no file, or to no heading of a page."""
    for link in _LINK.findall(without_code(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            yield link


def missing_paths(text):
    """Yield the paths of the repository that prose or a table names and that match no file."""
    for found in _PATH.findall(without_code(text)):
        name = _ANY.sub("*", found.rstrip("."))
        if not next(ROOT.glob(name), None):
            yield name


def without_code(text):
    """Return a page without its code blocks, whose commands may make files."""
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_leads_to_what_is_there(page):
    assert list(broken_links(page)) == []
    if page.name != "CHANGELOG.md":  # which also names files that are gone
        assert list(missing_paths(page.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_wrap(page):
    lines = prose(page.read_text(encoding="utf-8"))
    assert [number for number, line in lines if len(_LINK.sub("", line)) > _WIDEST] == []


def test_the_index_leads_to_every_page():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    linked = {link.partition("#")[0] for link in _LINK.findall(index)}
    assert {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"} <= linked


def leaves(command, words=()):
    """Yield the words of every command of the command line, such as ("zones", "check")."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield words
    for name, one in (inner or {}).items():
        yield from leaves(one, (*words, name))


def test_the_page_of_scenarios_has_each_that_ships_its_axes_and_what_uses_it():
    text = (ROOT / "docs" / "shipped-scenarios.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?`) \| .*? \| (.*?) \|(.*)\|$", text, re.MULTILINE)
    told = {name: (axes, used) for names, axes, used in rows for name in re.findall(r"`([\w-]+)`", names)}
    assert told.keys() == {path.stem for path in (ROOT / "scenarios").glob("*.json")}
    clauses = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "clauses").glob("*.json"))
    of_rfc_9743 = {name for criterion in rfc9743_criteria.CRITERIA for name in criterion.scenarios}
    compared = {network.scenario for network in changes.COMPARED_NETWORKS.values()}
    for name, (axes, used) in told.items():
        document = json.loads((ROOT / "scenarios" / f"{name}.json").read_text(encoding="utf-8"))
        assert re.findall(r"`(\w+)`", axes) == [axis["name"] for axis in document["axes"]], name
        assert ("zones" in used) == (name in documents.scenario_markers()), name
        assert ("clauses" in used) == (f'"scenario": "{name}"' in clauses), name
        assert ("RFC 9743" in used) == (name in of_rfc_9743), name
        assert ("`compare`" in used) == (name in compared), name


def test_the_first_study_of_its_guide_is_one(tmp_path):
    text = (ROOT / "docs" / "add-a-study.md").read_text(encoding="utf-8")
    (tmp_path / "beside.json").write_text(text.split("```json\n")[1].split("```")[0], encoding="utf-8")
    study = studies.find(str(tmp_path / "beside.json"))
    assert [claim.id for claim in study.claims] == ["C1"] and len(study.figures) == 1


def test_the_page_of_commands_has_every_command():
    text = (ROOT / "docs" / "command.md").read_text(encoding="utf-8")
    tables = text[text.index("## conformance: measure") : text.index("## --format json")]
    rows = {code for line in tables.splitlines() if line.startswith("| `") for code in re.findall(r"`([^`]+)`", line)}
    named = {" ".join(code.split()[:n]) for code in rows for n in range(1, 4)}
    assert [words for words in leaves(main) if " ".join(words) not in named] == []


def test_the_page_of_commands_has_every_marker_and_profile(request):
    ours = re.compile(r"(\S+): (?:algorithm|metric|tier|flows that share a network|clauses of)\b")
    markers = {found[1] for line in request.config.getini("markers") if (found := ours.match(line))}
    text = (ROOT / "docs" / "command.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"\| marker \|.*?(?=\n\n)", text, re.DOTALL)
    assert {name for row in table.splitlines() for name in re.findall(r"`([^`]+)`", row.split("|")[1])} == markers
    (profiles,) = re.findall(r"^\| `--profile NAME` \|(.*)\|$", text, re.MULTILINE)
    assert set(re.findall(r"`([^`]+)`", profiles)) == set(documents.profile_names())


def sources():
    """Yield the files whose comments and messages refer readers to pages."""
    for folder, pattern in (("conformance", "**/*.py"), ("conformance", "schemas/*.json"), ("examples", "*.py")):
        yield from sorted((ROOT / folder).glob(pattern))
    yield from (ROOT / "Makefile", ROOT / "action.yml")


def test_sources_name_pages_that_are_there():
    page = re.compile(r"(?<![\w./-])(?:docs|zones)/[\w-]+\.(?:md|yml)")
    named = {(path, name) for path in sources() for name in page.findall(path.read_text(encoding="utf-8"))}
    assert named
    assert {(str(path), name) for path, name in named if not (ROOT / name).exists()} == set()


def test_what_is_not_there_would_be_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A head\n[here](page.md#a-head) [gone](gone.md) [no head](page.md#other) [far](https://a.example)"
    )
    assert list(broken_links(page)) == ["gone.md", "page.md#other"]
    assert list(missing_paths("`zone.py`, conformance/gone.py, docs/gone.md. my/docs/no.md")) == [
        "conformance/gone.py",
        "docs/gone.md",
    ]
    assert [number for number, line in prose("a\n```\nb\n```\n| c |\nd") if line] == [1, 6]
