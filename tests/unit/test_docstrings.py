"""Docstrings begin with a verb in the imperative, as docs/style.md asks. ruff's D401 recognizes verbs only."""

import ast

from conformance.support import paths

#: words that are no verbs and that have been seen at the beginning of docstrings that say what a function returns
_NO_VERBS = frozenset(
    (
        *("A", "All", "An", "As", "At", "Both", "By", "Each", "Every", "For", "From", "Half", "How", "If", "In", "It"),
        *("Its", "Never", "No", "None", "Nothing", "Of", "On", "One", "Only", "Relative", "That", "The", "There"),
        *("These", "They", "This", "Those", "To", "What", "When", "Where", "Whether", "Which", "Who", "Why", "With"),
        "Without",
    )
)


def first_words(text):
    """Yield (function, first word of its docstring), without properties, whose docstrings are nouns."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            a_property = any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
            docstring = ast.get_docstring(node)
            if docstring and not a_property:
                yield node.name, docstring.split()[0]


def test_docstrings_begin_with_a_verb():
    found = {
        f"{module.relative_to(paths.PACKAGE)}: {function}": word
        for module in paths.PACKAGE.rglob("*.py")
        for function, word in first_words(module.read_text(encoding="utf-8"))
    }
    assert len(found) > 1000
    assert not {where: word for where, word in found.items() if word in _NO_VERBS or not word[0].isupper()}
