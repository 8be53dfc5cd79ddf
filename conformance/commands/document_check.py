"""`conformance dev document check`: what a newer text of the draft changes, and what of its adapter cites that.

The adapter keeps no sentence of the draft, but digests: of each section's text without its pseudocode, and of each
function of the pseudocode (adapters/document/draft.json).
"""

import dataclasses
import hashlib
import json
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from conformance.commands.result import Result
from conformance.commands.status import ExitStatus
from conformance.model.errors import UserError
from conformance.support import files, paths
from conformance.support.record import Record

ADAPTER = paths.data("adapters", "document")
_HEADING = re.compile(r"(\d+(?:\.\d+)*|Appendix [A-Z]|[A-Z](?:\.\d+)+|End)\.  (\S.*)")
_HEAD = re.compile(r" +[A-Z]\w+\([^()]*\):?")
#: blanks before a line of prose, and a heading; artwork has five, and less where its lines are long
_PROSE = (0, 3)
#: what pages of a text that is cut into pages begin and end with
_PAGE = re.compile(r".*\[Page \d+\]|Internet-Draft .*\d{4}|\f.*")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)+(?![\w.]*\w)")
_DECISION = re.compile(r" {1,2}(\d+)  \S")
_ITEM = re.compile(r"(?:pub(?:\(\w+\))? )?(?:fn|const|enum|struct|type) (\w+)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class DraftPart:
    """A section of the draft, or a function of its pseudocode (`name`), with digests of title and text."""

    section: str
    title: str
    name: str | None
    digest: str

    @property
    def key(self) -> tuple[str, str | None]:
        """What it is found by in another version: sections are renumbered."""
        return self.title, self.name


class ChangeRecord(Record):
    """A part of the draft that differs."""

    #: The section's number in the newer text, or in the kept one if it is gone.
    section: str
    #: The function of the pseudocode; null for the section's own text.
    name: str | None
    #: "changed", "new", "gone", or "now N" with the section's new number.
    what: str
    #: Functions of the adapter as file: name, and decisions of its EVIDENCE.txt.
    cited_by: Sequence[str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DraftChanges(Result):
    """What a newer text of the draft changes."""

    SCHEMA = "document-check"

    #: The version that the adapter was written from.
    version: str
    changes: Sequence[ChangeRecord]

    @property
    def exit_status(self) -> ExitStatus:
        """VIOLATES if the text differs."""
        return ExitStatus.VIOLATES if self.changes else ExitStatus.DONE


def compute(text: pathlib.Path, adapter: pathlib.Path = ADAPTER) -> DraftChanges:
    """Compare a text of the draft, as rendered (.txt), with the digests that the adapter keeps. Raises UserError."""
    version = json.loads(_read(adapter / "draft.json"))["version"]
    return DraftChanges(
        version=version, changes=list(_changes(kept_parts(adapter), parts_of(text), citations(adapter)))
    )


def kept_parts(adapter: pathlib.Path = ADAPTER) -> list[DraftPart]:
    """Return the parts of the text that the adapter was written from."""
    kept = json.loads(_read(adapter / "draft.json"))["parts"]
    return [DraftPart(name=part.get("name"), section=part["section"], title=part["title"], digest=part["digest"])
            for part in kept]  # fmt: skip


def keep(text: pathlib.Path, version: str, adapter: pathlib.Path = ADAPTER) -> pathlib.Path:
    """Write the digests of a text of the draft, once the adapter has what it says. Raises UserError."""
    parts_held = [
        {"section": part.section, "title": part.title, **({"name": part.name} if part.name else {}),
         "digest": part.digest} for part in parts_of(text)
    ]  # fmt: skip
    lines = ",\n    ".join(json.dumps(part) for part in parts_held)
    target = adapter / "draft.json"
    body = f'{{\n  "version": {json.dumps(version)},\n  "parts": [\n    {lines}\n  ]\n}}\n'
    files.write(target, body.encode(), "make it writable")
    return target


def parts_of(text: pathlib.Path) -> list[DraftPart]:
    """Return the parts of a rendered text. Raises UserError if it has no section with pseudocode."""
    parts = list(_parts(_read(text).splitlines()))
    if not any(part.name for part in parts):
        raise UserError(f"{text}: not the draft's text, since no section has pseudocode", "name the rendered .txt")
    return parts


def _parts(lines: Iterable[str]) -> Iterator[DraftPart]:
    section, title = "", ""
    prose: list[str] = []
    functions: dict[str, list[str]] = {}
    body: list[str] | None = None
    comment: list[str] = []
    base = 0
    kept = [line for line in [*lines, "End.  of the text"] if line.strip() and not _PAGE.fullmatch(line)]
    for line, after in zip(kept, [*kept[1:], ""], strict=True):
        indent = len(line) - len(line.lstrip())
        if body is not None and (indent in _PROSE or indent < base):
            body = None
        if heading := _HEADING.fullmatch(line):
            if section:
                yield DraftPart(section=section, title=title, name=None, digest=_digest(prose))
                for name, text in functions.items():
                    yield DraftPart(section=section, title=title, name=name, digest=_digest(text))
            section, title, prose, functions = heading[1], _digest([heading[2]]), [], {}
        elif body is not None and indent > base and not comment:
            body.append(line)
        elif comment or line.lstrip().startswith("/*"):
            # A comment stands before the function that it is about.
            comment.append(line)
            if "*/" in line and not _HEAD.fullmatch(after):
                (prose if body is None else body).extend(comment)
                comment = []
            elif "*/" in line:
                functions[_name(after)], comment = comment, []
        elif _HEAD.fullmatch(line) and len(after) - len(after.lstrip()) > indent and indent not in _PROSE:
            body, base = functions.setdefault(_name(line), []), indent
            body.append(line)
        else:
            (prose if body is None else body).append(line)


def _name(line: str) -> str:
    return line.strip().partition("(")[0]


def _read(path: pathlib.Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UserError(f"cannot read {path}: {why}", "name the draft's rendered .txt") from None


def _digest(lines: Sequence[str]) -> str:
    """Return a digest of the words of lines, however they are wrapped."""
    return hashlib.sha256(" ".join(" ".join(lines).split()).encode()).hexdigest()[:12]


def _changes(
    old: Sequence[DraftPart], new: Sequence[DraftPart], cites: Mapping[str, Sequence[str]]
) -> Iterator[ChangeRecord]:
    before, after = {part.key: part for part in old}, {part.key: part for part in new}
    for part in new:
        was = before.get(part.key)
        about = cites.get(part.name or (was.section if was else ""), ())
        if was is None or was.digest != part.digest:
            what = "changed" if was else "new"
            yield ChangeRecord(section=part.section, name=part.name, what=what, cited_by=about)
        elif was.section != part.section and not part.name:
            yield ChangeRecord(section=was.section, name=None, what=f"now {part.section}", cited_by=about)
    for part in old:
        if part.key not in after:
            about = cites.get(part.name or part.section, ())
            yield ChangeRecord(section=part.section, name=part.name, what="gone", cited_by=about)


def citations(adapter: pathlib.Path = ADAPTER) -> dict[str, list[str]]:
    """Return {section or function of the draft: what cites it} from the adapter's sources and EVIDENCE.txt."""
    places: dict[str, list[str]] = {}
    for source in sorted((adapter / "src").rglob("*.rs")):
        comment: list[str] = []
        for line in _read(source).splitlines():
            if (words := line.strip()).startswith("///"):
                comment.append(words[3:])
                continue
            if words.startswith("#["):
                continue
            if comment and (item := _ITEM.match(words)):
                where = f"{source.relative_to(adapter / 'src')}: {item[1]}"
                for cited in _cited(" ".join(comment)):
                    places.setdefault(cited, []).append(where)
            comment = []
    decision = None
    for line in _read(adapter / "EVIDENCE.txt").splitlines():
        started = _DECISION.match(line)
        decision = started[1] if started else decision if line.startswith("     ") else None
        if decision:
            for cited in _cited(line):
                places.setdefault(cited, []).append(f"EVIDENCE {decision}")
    return {cited: list(dict.fromkeys(where)) for cited, where in places.items()}


def _cited(text: str) -> set[str]:
    """Return the sections and the names of functions in a text: numbers with a dot, and words with a capital."""
    return set(re.findall(r"\b[A-Z]\w+", text)) | set(_NUMBER.findall(text))
