"""Tables in Markdown: whatever a cell holds, it stays one cell, and no markup."""

import re

import pytest
from hypothesis import given, strategies as st

from conformance.reporting.text.markdown import Raw, code, table


def test_a_table_is_a_header_a_rule_and_rows():
    assert table(("stack", "wall s"), [("quinn", 0.5), ("noq", None)], right={"wall s"}) == [
        "| stack | wall s |",
        "|---|---:|",
        "| quinn | 0.5 |",
        "| noq |  |",
    ]


@given(st.text(), st.text())
def test_whatever_cells_hold_a_row_is_one_line_with_as_many_cells(first, second):
    for cells in ((first, second), (code(first), code(second))):
        (*_, row) = table(("a", "b"), [cells])
        assert "\n" not in row
        assert len(re.split(r"(?<!\\)\|", row)) == 4  # on GitHub, a bar after any backslash does not end a cell


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a|b", "a\\|b"),
        ("\\|", "\\\\\\|"),
        ("<img>", "&lt;img>"),
        ("**bold** _it_ a_b", "\\*\\*bold\\*\\* \\_it\\_ a_b"),
        ("@someone", "&#64;someone"),
        ("[a](https://b)", "\\[a](https:&#47;/b)"),
        ("WWW.a", "WWW&#46;a"),
        ("&lt; & AT&T", "&amp;lt; & AT&T"),
        ("two\nlines", "two lines"),
    ],
)
def test_markup_of_others_is_text(text, escaped):
    (*_, row) = table(("a",), [(text,)])
    assert row == f"| {escaped} |"


def test_what_is_markdown_already_stands_as_it_is():
    (*_, row) = table(("a",), [(Raw("**x**<br>y"),)])
    assert row == "| **x**<br>y |"
