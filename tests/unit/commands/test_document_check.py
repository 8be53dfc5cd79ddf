"""`conformance dev document check`: a made-up text, and that the adapter's citations are of the text that it has."""

import re

import pytest
from helpers import invoke

from conformance.commands import document_check
from conformance.commands.result import printed
from conformance.commands.status import ExitStatus
from conformance.support import schema

TEXT = """\
1.  What It Is

   A kettle boils.

2.  Steps

2.1.  Filling

   Fill it first:

     /* Never above
      * the mark. */
     OnFill(amount):
       kettle.level = amount
       if (kettle.level > 2)
         Spill()

     Spill()
       kettle.level = 2

2.2.  Heating

   Then heat.

     OnHeat():
       kettle.temperature++
"""
SOURCE = """\
/// 2.1 OnFill
pub fn on_fill() {}

/// 2.1 Spill
fn spill() {}

/// 2.2 OnHeat: as deep as the text
fn on_heat() {}

/// 2.2
const DEGREES: f64 = 100.0;
"""


@pytest.fixture
def adapter(tmp_path):
    folder = tmp_path / "adapter"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "kettle.rs").write_text(SOURCE)
    (folder / "EVIDENCE.txt").write_text("Decisions\n  1  2.1 says nothing of tea,\n     and Spill() is loud.\n")
    (tmp_path / "old.txt").write_text(TEXT)
    document_check.keep(tmp_path / "old.txt", "kettle-00", folder)
    return folder


def changes(adapter, text):
    new = adapter.parent / "new.txt"
    new.write_text(text)
    return [
        (change.section, change.name, change.what, list(change.cited_by))
        for change in document_check.compute(new, adapter).changes
    ]


def test_wrapping_and_pages_change_nothing(adapter):
    page = "Tea, et al.      Expires 7 January 2027      [Page 2]\n\fInternet-Draft   Kettle   July 2026\n"
    paged = TEXT.replace("A kettle boils.\n", f"A kettle\n   boils.\n\n{page}")
    assert changes(adapter, paged) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("level > 2", "level > 3", [("2.1", "OnFill", "changed", ["kettle.rs: on_fill"])]),
        ("Never above", "Always below", [("2.1", "OnFill", "changed", ["kettle.rs: on_fill"])]),
        ("level = 2", "level = 1", [("2.1", "Spill", "changed", ["kettle.rs: spill", "EVIDENCE 1"])]),
        ("Then heat", "Then wait", [("2.2", None, "changed", ["kettle.rs: on_heat", "kettle.rs: DEGREES"])]),
        ("A kettle boils", "A pot boils", [("1", None, "changed", [])]),
        (
            "     OnHeat():\n       kettle.temperature++\n",
            "     OnBoil():\n       Whistle()\n",
            [("2.2", "OnBoil", "new", []), ("2.2", "OnHeat", "gone", ["kettle.rs: on_heat"])],
        ),
        (
            "2.2.  Heating",
            "2.2.  Waiting\n\n   Wait.\n\n2.3.  Heating",
            [("2.2", None, "new", []), ("2.2", None, "now 2.3", ["kettle.rs: on_heat", "kettle.rs: DEGREES"])],
        ),
    ],
)
def test_a_change_is_named_with_what_cites_it(adapter, old, new, expected):
    assert old in TEXT
    assert changes(adapter, TEXT.replace(old, new)) == expected


def test_a_file_without_pseudocode_is_refused_in_one_line(tmp_path):
    (tmp_path / "x.txt").write_text("1.  Nothing\n\n   Here.\n")
    for name, why in (("x.txt", "no section has pseudocode"), ("none.txt", "No such file")):
        done = invoke("dev", "document", "check", tmp_path / name)
        assert done.exit_code == ExitStatus.MISUSE
        assert why in done.stderr and done.stderr.count("\n") == 1


def test_the_command_says_what_differs(tmp_path):
    (tmp_path / "x.txt").write_text(TEXT)
    done = invoke("dev", "document", "check", tmp_path / "x.txt")
    assert done.exit_code == ExitStatus.VIOLATES
    assert "CheckDrainDone gone: bbr/drain.rs: check_drain_done" in done.stdout
    told = printed(document_check.compute(tmp_path / "x.txt"))
    schema.check("document-check", told, "test")


def test_what_the_adapter_cites_is_in_the_text_that_it_keeps():
    kept = {(part.section, part.name) for part in document_check.kept_parts()}
    sections = {section for section, _ in kept}
    for source in (document_check.ADAPTER / "src" / "bbr").glob("*.rs"):
        for section, name in re.findall(r"/// (\d+(?:\.\d+)+) ([A-Z]\w+)", source.read_text()):
            assert (section, name) in kept, f"{source.name}: {section} {name}"
            assert section in sections


def test_every_function_of_the_draft_is_somewhere_in_the_adapter():
    cited = document_check.citations()
    names = {part.name for part in document_check.kept_parts() if part.name}
    assert len(names) > 70
    assert names - set(cited) == set()
