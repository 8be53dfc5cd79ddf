"""`make lint` runs this: print each name that says nothing or means two things, and exit with 1 if there is one.

Words such as `found` say that a value exists, not what it is. Fields of records are named as in the JSON they print.
A class name is unique in the package, and no alias of a type has one. A value does not shadow a function or class of
its module. What is imported under another name keeps a word of its own, or of its module.
"""

import ast
import collections
import pathlib
import sys
from collections.abc import Iterator

EMPTY = frozenset({"asked", "found", "made", "one", "own", "seen", "told"})
#: words that add nothing as the first or the last part of a name
SPARE = EMPTY - {"made", "own"} | {"data", "item", "res", "result", "value"}
#: parts of names that are terms of the field, or fields of stored results
TERMS = ("asked_s", "data_center", "early_data", "one_segment", "one_sided", "one_way", "p_value", "watched_one_in")
#: aliases that are in files which a lab version covers (conformance/lab/version.py)
ATTESTED = frozenset({"Host", "LinkSeen"})
#: how many letters of a word tell which one it is: `zones` are of `zone`
STEM = 4


def values(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of each value, parameter and field, but not of a record's fields."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef) and any("Record" in ast.unparse(base) for base in node.bases):
            continue
        match node:
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.ExceptHandler(name=str(name)):
                yield node.lineno, name
        yield from values(node)


def says_nothing(name: str) -> bool:
    """Return whether a name is one of EMPTY, or one of SPARE with a prefix or a suffix."""
    words = name.lower().strip("_").split("_")
    is_term = any(term in name.lower() for term in TERMS)
    return name in EMPTY or (len(words) > 1 and not SPARE.isdisjoint((words[0], words[-1])) and not is_term)


def problems(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, what is wrong) with the names in a module."""
    yield from ((line, f"{name!r} does not say what it names") for line, name in values(tree) if says_nothing(name))
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            stored = (n for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
            yield from ((n.lineno, f"{n.id!r} shadows a definition above") for n in stored if n.id in defined)


def type_aliases(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of each alias of a type: what a module assigns to a name in capitals and small letters."""
    of_types = [node for node in tree.body if isinstance(node, ast.If)]
    for node in [*tree.body, *(inner for each in of_types for inner in each.body)]:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if name.lstrip("_")[0].isupper() and not name.isupper():
                    yield node.lineno, name


def strange_imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, alias) of what is imported from the package under a name that has no word of its own path."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("conformance."):
            for imported in node.names:
                path = f"{node.module}.{imported.name}".replace("_", ".").split(".")
                words = (imported.asname or imported.name).strip("_").split("_")
                if {word[:STEM] for word in path}.isdisjoint(word[:STEM] for word in words):
                    yield node.lineno, imported.asname or ""


def main() -> int:
    wrong = set()
    places, aliases = collections.defaultdict(list), []
    for file in sorted(pathlib.Path("conformance").rglob("*.py")):
        tree = ast.parse(file.read_text())
        wrong |= {f"{file}:{line}: {why}" for line, why in problems(tree)}
        wrong |= {f"{file}:{line}: {name!r} is no name of what is imported" for line, name in strange_imports(tree)}
        aliases += [(f"{file}:{line}", name) for line, name in type_aliases(tree)]
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and "scaffold" not in file.parts:
                places[node.name].append(f"{file}:{node.lineno}")
    wrong |= {f"{', '.join(at)}: {len(at)} classes are called {name}" for name, at in places.items() if len(at) > 1}
    wrong |= {f"{at}: {name} is a class, too" for at, name in aliases if name in places and name not in ATTESTED}
    print("\n".join(sorted(wrong)), end="\n" if wrong else "")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
