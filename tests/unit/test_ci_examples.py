"""Examples for CI and on pages: they can be parsed, and each command, its options and its algorithms exist."""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import click
import click.testing
import helpers
import pytest
from helpers import invoke

from conformance.cli import main
from conformance.commands import gate
from conformance.lab import manifest
from conformance.model.errors import UserError
from conformance.reporting.text.gate import VERDICT
from conformance.support import paths, trees

ROOT = paths.PACKAGE.parent
PAGES = ["docs/ci.md", "docs/scale-out.md"]
EXAMPLES = ["action.yml", "docs/gitlab-ci.yml"]


def load(name):
    return pytest.importorskip("yaml").safe_load((ROOT / name).read_text(encoding="utf-8"))


def scripts(name):
    """Return the shell lines of an example or of a page's code blocks, with continued lines joined."""
    if name.endswith(".md"):
        found = re.findall(r"```sh\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL)
    elif name == "action.yml":
        found = [step["run"] for step in load(name)["runs"]["steps"] if "run" in step]
    else:
        jobs = [job for job in load(name).values() if isinstance(job, dict)]
        found = [line for job in jobs for key in ("before_script", "script") for line in job.get(key, ())]
    return "\n".join(found).replace("\\\n", " ").splitlines()


def commands(name):
    for line in scripts(name):
        for match in re.finditer(r"(?:^|\$\(|&& |[A-Z_]+=\S+ )\s*(conformance [^|#]*)", line):
            text = re.sub(r"\$\{\w+:\+(.*?)\}", r"\1", match[1]).rstrip(") ")
            yield shlex.split(text)


def found(words):
    """Walk through groups of commands; return the command and its remaining words."""
    command = main
    words = words[1:]
    while isinstance(command, click.Group):
        assert words[0] in command.commands, words
        command, words = command.commands[words[0]], words[1:]
    return command, words


def check(words):
    """Assert that each option of a command exists; return the command's name."""
    command, words = found(words)
    known = {name for parameter in command.params for name in getattr(parameter, "opts", ())}
    for word in words[: words.index("--")] if "--" in words else words:
        if word.startswith("-") and word != "-":
            assert word in known, (command.name, word)
    return command.name


def named(value):
    """Yield the words of a parameter that may be given once, several times or not at all."""
    yield from [value] if isinstance(value, str) else value or ()


def not_offered(words):
    """Yield each (stack, algorithm) that a command asks of a shipped stack whose manifest lacks the algorithm."""
    command, words = found(words)
    if any(word.startswith("$") for word in words):  # a shell's variable, which may name the stack
        return
    # A command keeps the help option of its first context, so its parent must be the root, which also names it -h.
    root = click.Context(main, **main.context_settings)
    given = command.make_context(command.name, list(words), parent=root, resilient_parsing=True).params
    algorithms = [name for key in ("cca", "algorithm", "algorithms") for name in named(given.get(key))]
    sides = (given.get("base"), given.get("head")) if "base" in given else (given.get("stack"),)
    for stack in (side.partition("@")[0] for side in sides if side):
        if stack in manifest.names():
            yield from ((stack, name) for name in algorithms if name not in manifest.read(stack).offered())


@pytest.mark.parametrize("name", PAGES + EXAMPLES)
def test_every_command_exists_with_these_options(name):
    names = [check(words) for words in commands(name)]
    assert names.count("gate") >= 1
    least = {"docs/ci.md": 5, "docs/scale-out.md": 4, "action.yml": 4, "docs/gitlab-ci.yml": 4}
    assert len(names) >= least[name], names


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_verdict_within_a_budget_names_suspects(name):
    """With a budget, the gate looks for suspects only if asked to; a gate over a part of the cells has no verdict."""
    gates = [words for words in commands(name) if words[1] == "gate" and "--budget" in words]
    judging = [words for words in gates if "--out" in words]
    assert judging and all({"--why", "$why"} & set(words) for words in judging)


@pytest.mark.parametrize("page", sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"))), ids=lambda page: page.name)
def test_every_command_of_every_page_exists(page):
    for words in commands(str(page.relative_to(ROOT))):
        check(words)
        assert list(not_offered(words)) == []


def test_a_command_that_does_not_exist_would_be_noticed():
    with pytest.raises(AssertionError):
        check(["conformance", "gaet"])
    with pytest.raises(AssertionError):
        check(["conformance", "gate", "--bugdet", "10m"])


def test_an_algorithm_that_a_stack_lacks_would_be_noticed():
    def lacks(text):
        return list(not_offered(shlex.split(text)))

    assert lacks("conformance identify bbr --stack quinn") == [("quinn", "bbr")]
    assert lacks("conformance gate cubic bbrv3 --stack quinn") == [("quinn", "bbrv3")]
    assert lacks("conformance run newreno") == [("linux-tcp", "newreno")]
    assert lacks("conformance compare quinn linux-tcp@6.1 --algorithm bbrv2") == [("quinn", "bbrv2")]
    assert lacks("conformance identify mine --stack ../mine/adapter.json") == []


def test_the_action_is_one():
    action = load("action.yml")
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert action["runs"]["using"] == "composite"
    for about in (*action["inputs"].values(), *action["outputs"].values()):
        assert about["description"].endswith((".", ".)", ")")) and set(about) <= {"description", "default", "value"}
    used = set(re.findall(r"inputs\.([\w-]+)", text))
    assert used == set(action["inputs"])
    ids = {step["id"] for step in action["runs"]["steps"] if "id" in step}
    assert {match for match in re.findall(r"steps\.(\w+)\.", text)} <= ids
    for step in action["runs"]["steps"]:
        if "uses" not in step:
            assert step["shell"] == "bash"
            # An input that is pasted into a script is code; in an environment variable it is text.
            assert "${{" not in step["run"]


class Checkout:
    """A repository whose pull request changes the tree `stack`; it runs the action's steps."""

    def __init__(self, folder):
        self.root, self.temp, self.called = folder / "work", folder / "temp", folder / "called"
        for made in (self.root / "stack", self.temp, folder / "bin"):
            made.mkdir(parents=True)
        program = folder / "bin" / "conformance"
        helpers.program(program, f'echo "$*" >> {self.called}\necho {{}} >> conformance.jsonl')
        self.env = dict(os.environ, PATH=f"{program.parent}:{os.environ['PATH']}", RUNNER_TEMP=str(self.temp))
        self.env |= dict.fromkeys(("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"), os.devnull)
        for kind in ("AUTHOR", "COMMITTER"):
            self.env |= {f"GIT_{kind}_NAME": "a", f"GIT_{kind}_EMAIL": "a@example.org"}
        self.git("init", "-q")
        self.git("remote", "add", "origin", str(self.root))
        self.base = self.commit("before")
        self.commit("after")

    def git(self, *words):
        run = subprocess.run(["git", *words], cwd=self.root, env=self.env, check=True, capture_output=True, text=True)
        return run.stdout.strip()

    def commit(self, text, *more):
        for name in ("stack/tree", *more):
            (self.root / name).write_text(text)
        self.git("add", ".")
        self.git("commit", "-qm", text)
        return self.git("rev-parse", "HEAD")

    def run(self, name, **inputs):
        """Run a step; return what it called, with the names of its folders replaced, and its outputs."""
        (step,) = [step for step in load("action.yml")["runs"]["steps"] if step["name"] == name]
        defaults = {key: about.get("default", "") for key, about in load("action.yml")["inputs"].items()}
        words = {f"${{{{ inputs.{key} }}}}": value for key, value in (defaults | inputs).items()}
        env = {key: words.get(value, self.env.get(key, "")) for key, value in step["env"].items()}
        output = self.temp / "output"
        env |= {"CC_BASE": self.base} if "CC_BASE" in env else {}
        run = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        subprocess.run(run, cwd=self.root, env=self.env | env | {"GITHUB_OUTPUT": str(output)}, check=True)
        called = self.called.read_text().splitlines() if self.called.exists() else []
        return [line.replace(str(self.temp), "TEMP").replace(str(self.root), "WORK") for line in called], output


OPTIONS = "--client common --budget 5m --results conformance.jsonl --out conformance-report/compare"
COMPARE = "Compare the pull request with its base"


@pytest.mark.slow
@pytest.mark.parametrize("source", ["quinn-proto=stack,quinn=../udp", "quinn-proto=WORK/stack,quinn=../udp"])
def test_a_pull_request_to_a_source_is_compared_with_the_base_s_tree(tmp_path, source):
    checkout = Checkout(tmp_path)
    (checkout.root / "quinn").mkdir()  # a folder of the repository with the stack's name
    checkout.commit("after", "quinn/lib")
    source = source.replace("WORK", str(checkout.root))
    called, output = checkout.run(COMPARE, stack="quinn", source=source, algorithms="cubic reno")
    own = source.replace(str(checkout.root), "WORK").split(",")[0]
    base = "quinn-proto=TEMP/cc-base/stack"
    assert called == [
        f"adapter build quinn --source {base} --source quinn=../udp",
        f"compare quinn quinn --base-source {base} --source {own} --base-source quinn=../udp --source quinn=../udp"
        f" --algorithm cubic --algorithm reno {OPTIONS}",
    ]
    assert (checkout.temp / "cc-base" / "stack" / "tree").read_text() == "before"
    assert output.read_text() == "status=0\n"
    for words in called:
        check(["conformance", *words.split()])


@pytest.mark.slow
def test_a_pull_request_to_an_adapter_is_compared_with_the_base_s_adapter(tmp_path):
    called, output = Checkout(tmp_path).run(COMPARE, stack="stack/tree")
    assert called == [
        "adapter build TEMP/cc-base/stack/tree",
        f"compare TEMP/cc-base/stack/tree stack/tree {OPTIONS}",
    ]
    assert output.read_text() == "status=0\n"


@pytest.mark.slow
@pytest.mark.parametrize("left", ["all", "what git knows"])
def test_an_earlier_comparison_s_base_is_in_nobody_s_way(tmp_path, left):
    """The base is from a step of the same job, or from an earlier job whose temporary folder the runner has emptied."""
    checkout = Checkout(tmp_path)
    checkout.run(COMPARE, stack="stack/tree")
    base = checkout.temp / "cc-base"
    if left != "all":
        shutil.rmtree(base)
    checkout.base = checkout.git("rev-parse", "HEAD")
    checkout.commit("later")
    checkout.run(COMPARE, stack="stack/tree")
    assert (base / "stack" / "tree").read_text() == "after"


@pytest.mark.slow
@pytest.mark.parametrize("stack", ["quinn", "stack/new.json", "new.json"])
def test_a_stack_that_the_base_lacks_is_compared_with_nothing(tmp_path, stack, capfd):
    called, output = Checkout(tmp_path).run(COMPARE, stack=stack)
    assert not called and output.read_text() == "status=4\n"
    assert "nothing is compared" in capfd.readouterr().out


@pytest.mark.slow
def test_what_makes_a_source_ready_runs_in_head_and_base(tmp_path):
    checkout = Checkout(tmp_path)
    prepare = {"source": "picoquic=.", "prepare": "cp stack/tree program", "stack": "picoquic"}
    checkout.run("Build the guest kernel and the stack", **prepare)
    checkout.run(COMPARE, **prepare)
    made = {place: (place / "program").read_text() for place in (checkout.root, checkout.temp / "cc-base")}
    assert list(made.values()) == ["after", "before"]


@pytest.mark.slow
def test_a_base_that_cannot_be_made_ready_is_said_and_ends_nothing(tmp_path):
    called, output = Checkout(tmp_path).run(COMPARE, stack="picoquic", source="picoquic=.", prepare="exit 7")
    assert not called and output.read_text() == "status=4\n"


@pytest.mark.slow
def test_a_base_that_cannot_be_fetched_is_said_and_ends_nothing(tmp_path, capfd):
    checkout = Checkout(tmp_path)
    checkout.base = "1" * 40
    checkout.git("remote", "set-url", "origin", str(tmp_path / "nowhere"))
    called, output = checkout.run(COMPARE, stack="stack/tree")
    assert not called and output.read_text() == "status=4\n"
    assert "::notice::the base cannot be fetched: nothing is compared" in capfd.readouterr().out


@pytest.mark.slow
def test_a_base_that_a_whole_clone_has_is_not_fetched(tmp_path):
    checkout = Checkout(tmp_path)
    checkout.run(COMPARE, stack="stack/tree")
    assert checkout.git("rev-list", "--count", "HEAD") == "2"


@pytest.mark.slow
@pytest.mark.parametrize("is_githubs", [True, False])
def test_the_base_is_what_github_merged_with_and_not_what_it_was_before(tmp_path, is_githubs):
    checkout = Checkout(tmp_path)
    checkout.git("checkout", "-q", "-b", "base", checkout.base)
    checkout.commit("meanwhile")
    checkout.git("merge", "-q", "-s", "ours", "-m", "merge", "@{-1}")
    checkout.env["GITHUB_SHA"] = checkout.git("rev-parse", "HEAD") if is_githubs else checkout.base
    checkout.run(COMPARE, stack="stack/tree")
    tree = (checkout.temp / "cc-base" / "stack" / "tree").read_text()
    assert tree == ("meanwhile" if is_githubs else "before")


@pytest.mark.slow
def test_an_absolute_path_is_the_base_s_own_too(tmp_path):
    checkout = Checkout(tmp_path)
    called, _ = checkout.run(COMPARE, stack=f"{checkout.root}/stack/tree")
    assert called[0] == "adapter build TEMP/cc-base/stack/tree"


@pytest.mark.slow
def test_submodules_are_the_base_s_own(tmp_path):
    library = tmp_path / "library"
    library.mkdir()
    checkout = Checkout(tmp_path)
    checkout.env |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "protocol.file.allow"}
    checkout.env |= {"GIT_CONFIG_VALUE_0": "always"}
    for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "x")):
        subprocess.run(["git", *words], cwd=library, env=checkout.env, check=True)
    checkout.git("submodule", "--quiet", "add", str(library), "dep")
    checkout.base = checkout.commit("with a submodule")
    checkout.commit("later")
    checkout.run(COMPARE, stack="stack/tree")
    assert (checkout.temp / "cc-base" / "dep" / ".git").exists()


@pytest.mark.slow
def test_what_the_steps_write_does_not_change_the_digest_of_a_source(tmp_path):
    checkout = Checkout(tmp_path)
    before = trees.read(checkout.root).digest
    checkout.run("Build the guest kernel and the stack", stack="quinn", source="quinn-proto=.")
    for name in ("conformance.jsonl", "conformance.features.jsonl", "conformance-report/summary.md"):
        (checkout.root / name).parent.mkdir(exist_ok=True)
        (checkout.root / name).write_text("new")
    assert trees.read(checkout.root).digest == before
    (checkout.root / "new").write_text("new")
    assert trees.read(checkout.root).digest != before


#: a stand-in for GitHub's program: it tells the user, lists comments, and records requests for changes
GH = """#!/bin/sh
case "$2" in
  user) if [ -n "$LOGIN" ]; then echo "$LOGIN"; else echo '{"message": "Resource not accessible"}'; exit 1; fi ;;
  --paginate) jq -r "$5" "$COMMENTS" ;;
  *) echo "$2 $3 $4" >> "$CALLED" ;;
esac
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("login", "asked"),
    [("", "PATCH repos/a/b/issues/comments/3"), ("ann", "PATCH repos/a/b/issues/comments/2"),
     ("bea", "POST repos/a/b/issues/7/comments")],
)  # fmt: skip
def test_a_later_run_edits_the_comment_that_its_own_token_wrote(tmp_path, login, asked):
    """The job's token belongs to a bot. Any user may write the mark, but comments of other users are not edited."""
    if not shutil.which("jq"):
        pytest.skip("jq is not installed")
    checkout = Checkout(tmp_path)
    gh = tmp_path / "bin" / "gh"
    gh.write_text(GH)
    gh.chmod(0o755)
    mark = "<!-- cc-conformance: conformance -->"
    written = [("eve", "User", "hello"), ("ann", "User", mark), ("github-actions[bot]", "Bot", mark)]
    comments = [
        {"id": number, "body": f"{body}\nmore", "user": {"login": who, "type": kind}}
        for number, (who, kind, body) in enumerate(written, 1)
    ]
    (tmp_path / "comments").write_text(json.dumps(comments))
    asking = {"LOGIN": login, "COMMENTS": str(tmp_path / "comments"), "CALLED": str(checkout.called)}
    checkout.env |= {**asking, "GH_REPO": "a/b", "CC_NUMBER": "7"}
    called, _ = checkout.run("Comment on the pull request")
    assert called == [f"--method {asked}"]


@pytest.mark.slow
@pytest.mark.parametrize("ended", ["before the gate", "with it"])
def test_a_comment_says_where_the_job_ended_before_there_was_a_verdict(tmp_path, ended):
    checkout = Checkout(tmp_path)
    gh = tmp_path / "bin" / "gh"
    gh.write_text(GH.replace("jq -r", "true"))
    gh.chmod(0o755)
    if ended == "with it":
        (checkout.root / "conformance-report").mkdir()
        (checkout.root / "conformance-report" / "summary.md").write_text("### Gate passes\n")
    checkout.env |= {"LOGIN": "", "CALLED": str(checkout.called), "GH_REPO": "a/b", "CC_NUMBER": "7"}
    checkout.run("Comment on the pull request")
    body = (checkout.temp / "cc-comment.md.whole").read_text()
    assert ("The job ended before the gate did" in body) == (ended == "before the gate")


@pytest.mark.slow
@pytest.mark.parametrize("given", [{}, {"baseline": "before.jsonl"}])
def test_the_gate_takes_what_its_step_gives_it_whatever_the_inputs(tmp_path, monkeypatch, given):
    """With a baseline, the step gave --why, which the gate refuses there."""
    flags = dict.fromkeys(("strict", "features", "clauses"), "true")
    called, output = Checkout(tmp_path).run("Gate", algorithms="cubic reno", shard="1/2", **flags, **given)
    taken = []

    def compute(options, means):
        taken.append(options)
        raise UserError("nothing is measured")

    monkeypatch.setattr(gate, "compute", compute)
    (words,) = called
    invoke(*words.split())
    (options,) = taken
    assert (options.baseline, options.why) == (given.get("baseline"), not given)
    assert options.strict and options.features and options.clauses and options.annotations
    assert list(options.algorithms) == ["cubic", "reno"] and output.read_text() == "status=0\n"


@pytest.mark.slow
def test_later_steps_get_our_command_and_keep_their_python_and_see_no_earlier_verdict(tmp_path):
    checkout = Checkout(tmp_path)
    stale = [checkout.root / "conformance-report" / name for name in (*VERDICT, "compare/compare.md")]
    stale[-1].parent.mkdir(parents=True)
    for file in stale:
        file.touch()
    action = tmp_path / "action"
    (action / ".venv" / "bin").mkdir(parents=True)
    for name in ("setup.sh", ".venv/bin/conformance", ".venv/bin/python"):
        helpers.program(action / name)
    checkout.env |= {"GITHUB_ACTION_PATH": str(action), "GITHUB_PATH": str(tmp_path / "path")}
    checkout.run("Install the suite")
    assert not any(file.exists() for file in stale)
    (folder,) = (tmp_path / "path").read_text().split()
    assert [path.name for path in pathlib.Path(folder).iterdir()] == ["conformance"]
    assert (pathlib.Path(folder) / "conformance").resolve() == action / ".venv" / "bin" / "conformance"


@pytest.mark.parametrize(
    "name", ["action.yml", *(f".github/workflows/{name}.yml" for name in ("ci", "record", "release"))]
)
def test_actions_of_others_are_pinned_to_a_commit(name):
    """The owner of a tag can move it. A comment has the tag that the commit had when it was pinned."""
    used = re.findall(r"uses: (.*)", (ROOT / name).read_text(encoding="utf-8"))
    assert len(used) >= 2
    for text in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", text), text


def test_the_workflow_grants_nothing_but_reading_and_runs_what_people_run():
    workflow = load(".github/workflows/ci.yml")
    assert workflow["permissions"] == {}
    assert all(job["permissions"] == {"contents": "read"} for job in workflow["jobs"].values())
    run = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    made = [line.removeprefix("make ") for line in run if line.startswith("make ")]
    assert set(made) == {"quick", "coverage", "thorough"} <= set(targets)
    *steps, last = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert ".ci/run" in run and last == "exec make test" and ".ci/ordinary-user" in steps


def test_the_run_of_an_ordinary_user_is_left_out_without_root_and_says_so(tmp_path):
    helpers.program(tmp_path / "id", "echo 1000")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run([ROOT / ".ci" / "ordinary-user"], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "ordinary user: skipped, because only root can make a user\n"


def test_jobs_that_build_the_guest_kernel_run_where_its_source_is():
    """Only the job `quick` runs on the machine itself, because Python's other versions are made for that."""
    jobs = load(".github/workflows/ci.yml")["jobs"]
    assert [name for name, job in jobs.items() if "container" not in job] == ["quick"]
    for job in jobs.values():
        if "container" in job:  # the container lacks even git and make
            first = job["steps"][0]["run"].split()
            assert first[:2] == ["apt-get", "update"] and {"git", "make", "python3", "ca-certificates"} <= set(first)


def test_the_image_is_built_for_every_change_of_what_goes_into_it():
    paths = load(".github/workflows/image.yml")[True]["pull_request"]["paths"]  # YAML takes the key `on` for true
    parts = [line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[0] == "!"]
    parts += [".dockerignore", "Containerfile", "Makefile"]
    assert {f"{part}/**" if (ROOT / part).is_dir() else part for part in parts} < set(paths)


def test_a_release_tests_what_it_publishes_and_names_no_registry():
    text = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    workflow = load(".github/workflows/release.yml")
    assert workflow["permissions"] == {}
    jobs = workflow["jobs"]
    assert {name: job["permissions"] for name, job in jobs.items()} == {
        "build": {"contents": "read"}, "release": {"contents": "write"}, "publish": {"id-token": "write"},
    }  # fmt: skip
    assert (jobs["release"]["needs"], jobs["publish"]["needs"]) == ("build", "release")
    run = [step["run"] for step in jobs["build"]["steps"] if "run" in step]
    (tests,) = [line.split()[2:] for line in run if "bin/pytest" in line]
    assert tests and all((ROOT / test).is_file() for test in tests)
    assert run.index("make dist") < run.index(next(line for line in run if "source.py" in line))
    assert "://" not in text


def test_a_release_says_where_the_project_is_in_all_that_it_publishes():
    text = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    (replaced,) = re.findall(r'sed -i "s#OWNER/cc-conformance#\$GITHUB_REPOSITORY#" (.*)', text)
    files = [*ROOT.glob("*.*"), *ROOT.glob("kernel-wheel/*.*")]
    naming = {str(f.relative_to(ROOT)) for f in files if f.is_file() and b"OWNER/cc-conformance" in f.read_bytes()}
    assert set(replaced.split()) == naming
    assert "cp CITATION.cff dist/* release/" in text


def test_help_lists_every_target():
    made = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    (phony,) = re.findall(r"^\.PHONY: ((?:.*\\\n)*.*)", text, re.MULTILINE)
    assert sorted(line.split()[0] for line in made.splitlines()) == sorted(phony.replace("\\\n", " ").split())
