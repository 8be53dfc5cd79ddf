"""The schemas that ship are valid, and closed."""

import json

import jsonschema
import pytest

from conformance.support import paths

SCHEMAS = sorted((paths.PACKAGE / "schemas").glob("*.json"))


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.stem)
def test_schemas_satisfy_their_metaschema(path):
    schema = json.loads(path.read_text(encoding="utf-8"))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)


def test_there_are_schemas():
    assert len(SCHEMAS) >= 11
