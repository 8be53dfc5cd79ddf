"""The schemas that ship are valid, and closed."""

import json

import jsonschema
import pytest
from helpers import refusal

from conformance.commands import schemas
from conformance.model.errors import UserError
from conformance.support import paths, schema

SCHEMAS = sorted((paths.PACKAGE / "schemas").glob("*.json"))


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.stem)
def test_schemas_satisfy_their_metaschema(path):
    schema = json.loads(path.read_text(encoding="utf-8"))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.slow
def test_the_schemas_of_what_commands_print_are_those_of_their_records():
    for name, made in schemas.schemas().items():
        assert schemas.path(name).read_text(encoding="utf-8") == schemas.render(made), f"{name}: run `make schemas`"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": ' * 400 + "1" + "}" * 400, "/a/a/.*: nested more than 50 deep"),
        ("[" * 100_000, "nested too deeply"),
        ("[1, 1e999]", "/1: inf is not between"),
        ('{"a": 1, "b": {"c": 1, "d": 2, "c": 3}}', "/b/c: the name appears twice"),
        ('["\\u001b[31m"]', "/0: control characters are not text"),
        ('{"\\u202e": 1}', "control characters are not text"),
        ('["\\u061c"]', "/0: control characters are not text"),
        ('["\\u2028"]', "/0: control characters are not text"),
        ('["\\u2029"]', "/0: control characters are not text"),
        ('["a\\n"]', "/0: control characters are not text"),
    ],
)
def test_what_no_schema_can_refuse_is_refused(tmp_path, text, words):
    path = tmp_path / "document.json"
    path.write_text(text)
    with pytest.raises(UserError, match=words):
        schema.read(path)


def test_a_document_is_read_up_to_its_bound():
    assert "cannot read /dev/zero: it has more than 4 MB" in refusal(schema.read, "/dev/zero")


@pytest.mark.slow
@pytest.mark.parametrize("items", [[1] * 20_000, [1, "a"] * 10_000], ids=["alike", "unlike"])
def test_of_many_errors_few_are_made(monkeypatch, items):
    """An error takes 3 kB, and a list of 600 kB has 300,000 of them."""
    made = []
    errors = jsonschema.exceptions
    init = errors._Error.__init__
    monkeypatch.setattr(errors._Error, "__init__", lambda self, *a, **b: made.append(1) or init(self, *a, **b))
    document = {"version": 1, "expected": [{"zone": "a/b", "cells": items, "verdict": "violates", "reason": "x"}] * 20}
    assert "/expected/" in refusal(schema.check, "expected", document, "here")
    assert len(made) < 1000


def test_numbers_of_a_list_take_no_validator_each_and_one_that_is_none_is_named(monkeypatch):
    made, of = [], schema._class()
    evolve = of.evolve
    monkeypatch.setattr(of, "evolve", lambda *a, **b: made.append(1) or evolve(*a, **b))
    document = json.loads(paths.data("zones", "cubic", "heatmap.json").read_text(encoding="utf-8"))
    values = [basis["values"] for cell in document["cells"] for basis in cell["bases"]]
    schema.check("zone", document, "here")
    assert len(made) < sum(map(len, values))
    values[0][3] = "0.9"
    with pytest.raises(UserError, match=r"here: /cells/0/bases/0/values/3: '0.9' is not of type 'number'"):
        schema.check("zone", document, "here")


def test_a_document_that_was_read_before_is_not_checked_again_and_one_that_changed_is(tmp_path, monkeypatch):
    asked = []
    check = schema.check
    monkeypatch.setattr(schema, "check", lambda name, *of: asked.append(name) or check(name, *of))
    path = tmp_path / "expected.json"
    path.write_text('{"version": 1, "expected": []}\n')
    first = schema.load("expected", path)
    first["expected"].append("a caller's own")
    assert schema.load("expected", path) == {"version": 1, "expected": []} and asked == ["expected"]
    for name in ("zone", "zone"):  # what is wrong is found again, and what satisfies one schema may break another
        with pytest.raises(UserError, match=f"{path}: /"):
            schema.load(name, path)
    path.write_text('{"version": 1, "expected": 17}\n')
    assert "/expected: 17 is not of type 'array'" in refusal(schema.load, "expected", path)


def test_items_that_are_alike_are_refused():
    entry = {"zone": "a/b", "cells": ["x", "x"], "verdict": "violates", "reason": "x"}
    assert "an item appears twice" in refusal(schema.check, "expected", {"version": 1, "expected": [entry]}, "here")
