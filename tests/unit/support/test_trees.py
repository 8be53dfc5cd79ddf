"""Working trees: which files count, which do not, and a copy that follows the tree."""

import os
import pathlib
import subprocess

import pytest
from helpers import program

from conformance.model.errors import UserError
from conformance.support import paths, trees


def git(folder, *arguments):
    who = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


def written(root, **files):
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def repository(tmp_path):
    root = written(tmp_path / "tree", _DOT_gitignore="out\n*.log\n", src__a="1", src__b="2", top="t")
    git(root, "init")
    git(root, "add", ".")
    git(root, "commit", "-m", "x")
    return root


def digest(path, **options):
    return trees.read(path, **options).digest


def test_in_a_repository_what_is_tracked_or_new_counts_and_what_is_ignored_does_not(repository):
    before = digest(repository)
    written(repository, out__x="1", y_DOT_log="2")
    assert digest(repository) == before
    written(repository, src__new="3")
    new = digest(repository)
    git(repository, "add", ".")
    git(repository, "commit", "-m", "y")
    assert digest(repository) == new != before  # the same files, committed or not
    (repository / "src" / "a").unlink()
    assert digest(repository) not in (new, before)


def test_part_of_a_repository_is_the_whole_of_it(repository):
    """The whole repository counts, because a crate takes settings from its workspace, and code from its neighbours."""
    before = digest(repository / "src")
    assert before == digest(repository)
    written(repository, top="changed")
    assert digest(repository / "src") != before


def test_a_folder_that_a_repository_ignores_is_a_tree_of_its_own(repository):
    written(repository, out__fork__a="1")
    before = trees.read(repository / "out" / "fork")
    assert list(before.entries) == ["a"]
    written(repository, top="changed")
    assert digest(repository / "out" / "fork") == before.digest


def test_a_repository_within_counts_with_its_content(repository):
    written(repository, inner__x="1")
    git(repository / "inner", "init")
    git(repository / "inner", "add", ".")
    git(repository / "inner", "commit", "-m", "x")
    before = trees.read(repository)
    assert "inner/x" in before.entries
    written(repository, inner__x="2")
    assert digest(repository) != before.digest


def test_variables_of_a_git_hook_do_not_lead_elsewhere(repository, tmp_path, monkeypatch):
    before = digest(repository)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "nothing"))
    assert digest(repository) == before


def test_outside_of_git_all_counts_but_caches(tmp_path):
    root = written(tmp_path / "tree", Cargo_DOT_toml="", src__target__a="1")
    before = trees.read(root)
    assert set(before.entries) == {"Cargo.toml", "src/target/a"}
    written(root, target__debug__x="1", node_modules__m="1", built__CACHEDIR_DOT_TAG="", built__y="1")
    assert digest(root) == before.digest
    written(root, src__b="2")
    assert digest(root) != before.digest


def test_a_link_that_leads_to_itself_is_a_link(tmp_path):
    root = written(tmp_path / "tree", a="1")
    (root / "loop").symlink_to("loop")
    assert trees.read(root).entries["loop"] == "link loop"


def test_without_git_a_repository_is_refused_and_any_other_folder_read(repository, tmp_path, monkeypatch):
    """Without git, ignored files would count, too, so the digest would differ from that on a machine with git."""
    plain = written(tmp_path / "plain", a="1")
    before = digest(plain)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert digest(plain) == before
    for path in (repository, repository / "src"):
        with pytest.raises(UserError, match=r"^/\S+ is in a git repository, but git is not on PATH; install git$"):
            trees.read(path)
    (repository / ".git").rename(repository / "git")
    (repository / ".git").write_text("gitdir: git")  # as in worktrees and submodules
    with pytest.raises(UserError, match="install git"):
        trees.read(repository)


def test_a_git_that_does_not_end_is_named(repository, tmp_path, monkeypatch):
    program(tmp_path / "git", "exec sleep 9")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(trees, "_GIT_TIMEOUT_S", 0.1)
    with pytest.raises(UserError, match=r"`git rev-parse` in \S+ took longer than 0\.1 s; run the same command again"):
        trees.read(repository)


RESULT = '{"evidence":{},"schema":"measurement/1"}\n'


@pytest.mark.parametrize("with_git", [True, False])
def test_the_suites_own_cache_and_results_in_a_tree_are_no_part_of_it(tmp_path, monkeypatch, with_git):
    """They are in the tree in CI, where only the project's folder is kept from job to job."""
    root = written(tmp_path / "tree", src__a="1")
    if with_git:
        git(root, "init")
        git(root, "add", ".")
        git(root, "commit", "-m", "x")
    monkeypatch.setenv("CC_CONFORMANCE_CACHE", f"{root}/_cache:{root}/read")
    before, built = digest(root), digest(root, programs=True)
    paths.tag_cache()
    written(root, _cache__adapters__x="1", read__y="1", out__CACHEDIR_DOT_TAG="s", out__site__index="1")
    written(root, results__results_DOT_jsonl=RESULT, x_DOT_features_DOT_jsonl='{"cell":{}}\n')
    assert digest(root) == before
    written(root, _cache__adapters__tool="1")
    (root / "_cache" / "adapters" / "tool").chmod(0o755)
    assert digest(root, programs=True) == built
    monkeypatch.setenv("CC_CONFORMANCE_CACHE", f"{tmp_path}/other:{root}/read")  # its tag says that it is the suite's
    assert digest(root) == before
    assert digest(root, programs=True) == built
    written(root, data_DOT_jsonl="{}")
    assert digest(root) != before


def test_what_git_tracks_counts_in_a_folder_that_is_tagged_and_as_results_too(repository):
    written(repository, kept__CACHEDIR_DOT_TAG="s", kept__x="1", base_DOT_jsonl=RESULT)
    git(repository, "add", "kept/x", "base.jsonl")
    assert {"kept/x", "base.jsonl"} <= set(trees.read(repository).entries)
    assert "kept/CACHEDIR.TAG" not in trees.read(repository).entries


def test_a_link_to_a_cache_outside_is_no_part_of_a_tree(repository, tmp_path, monkeypatch):
    before = digest(repository)
    (tmp_path / "cache").mkdir()
    monkeypatch.setenv("CC_CONFORMANCE_CACHE", str(tmp_path / "cache"))
    (repository / "link").symlink_to(tmp_path / "cache")
    assert digest(repository) == before


def test_names_contents_and_rights_to_execute_count(tmp_path):
    root = written(tmp_path / "tree", a="1", b="2")
    seen = {digest(root)}
    (root / "a").chmod(0o755)
    seen.add(digest(root))
    (root / "a").rename(root / "c")
    seen.add(digest(root))
    (root / "c").write_text("2")
    seen.add(digest(root))
    (root / "c").write_text("1")
    (root / "c").rename(root / "a")
    (root / "a").chmod(0o644)
    assert digest(root) in seen and len(seen) == 4
    os.utime(root / "a", (0, 0))
    assert digest(root) in seen


def test_programs_that_are_ignored_count_where_they_are_asked_for(repository):
    written(repository, out__demo="x", out__lib_DOT_so_DOT_1="x", out__demo_DOT_o="x")
    (repository / "out" / "demo").chmod(0o755)
    plain, before = digest(repository), trees.read(repository, programs=True)
    assert {"out/demo", "out/lib.so.1"} <= set(before.entries)
    assert "out/demo.o" not in before.entries
    written(repository, out__demo="y")
    assert digest(repository, programs=True) != before.digest
    assert digest(repository) == plain


def test_a_link_out_of_the_tree_counts_as_the_file_it_leads_to(tmp_path):
    root = written(tmp_path / "tree", a="1")
    written(tmp_path, outside="1")
    (root / "inside").symlink_to("a")
    (root / "out").symlink_to("../outside")
    (root / "broken").symlink_to("nothing")
    before = trees.read(root)
    assert before.entries["inside"] == "link a"
    assert before.entries["broken"] == "link nothing"
    assert before.entries["out"].startswith("file ")
    written(tmp_path, outside="2")
    assert digest(root) != before.digest
    (root / "folder").symlink_to("..")
    with pytest.raises(UserError, match=r"/folder leads to .*, outside of .*; name a tree that holds"):
        trees.read(root)


def test_what_cannot_be_read_is_said_in_one_line(tmp_path):
    with pytest.raises(UserError, match=r"cannot read .*nothing: No such file"):
        trees.read(tmp_path / "nothing")


def test_a_single_file_is_a_tree(tmp_path):
    written(tmp_path, a="1", b="2")
    before = trees.read(tmp_path / "a")
    written(tmp_path, b="3")
    assert digest(tmp_path / "a") == before.digest
    written(tmp_path, a="3")
    assert digest(tmp_path / "a") != before.digest


def test_the_commit_is_named_and_whether_something_changed_since(repository, tmp_path):
    commit = trees.commit(repository)
    assert len(commit) >= 8 and not commit.endswith("-dirty")
    written(repository, top="changed")
    assert trees.commit(repository) == f"{commit}-dirty"
    assert trees.commit(written(tmp_path / "plain", a="1")) is None


def test_a_copy_follows_and_leaves_alone_what_is_equal(tmp_path):
    root, copy = written(tmp_path / "tree", a="1", sub__b="2", sub__c="3"), tmp_path / "copy"
    (root / "a").chmod(0o755)
    (root / "link").symlink_to("sub/b")
    trees.follow(trees.read(root), copy)
    assert digest(copy) == digest(root)
    old = (copy / "sub" / "b").stat().st_mtime_ns
    (root / "sub" / "c").unlink()
    written(root, sub__c__now="a folder")
    (root / "a").unlink()
    (copy / "stray").mkdir()
    written(copy, stray__x="1")
    trees.follow(trees.read(root), copy)
    assert digest(copy) == digest(root)
    assert not (copy / "stray").exists()
    assert (copy / "sub" / "b").stat().st_mtime_ns == old


def test_an_older_file_is_new_in_the_copy(tmp_path):
    """cargo compares times, so it would take a file from a backup, with an old time, for one that it has compiled."""
    root, copy = written(tmp_path / "tree", a="1"), tmp_path / "copy"
    trees.follow(trees.read(root), copy)
    before = (copy / "a").stat().st_mtime_ns
    (root / "a").write_text("2")
    os.utime(root / "a", (1, 1))
    trees.follow(trees.read(root), copy)
    assert (copy / "a").read_text() == "2"
    assert (copy / "a").stat().st_mtime_ns >= before


def test_a_tree_that_changes_while_it_is_copied_is_refused(tmp_path):
    root = written(tmp_path / "tree", a="1", b="2")
    tree = trees.read(root)
    written(root, b="3")
    with pytest.raises(UserError, match="tree/b changed while it was being copied; run the same command again"):
        trees.follow(tree, tmp_path / "copy")
    (root / "b").unlink()
    with pytest.raises(UserError, match="tree/b disappeared while it was being copied"):
        trees.follow(tree, pathlib.Path(tmp_path / "copy"))
