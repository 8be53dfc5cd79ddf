"""The container images build every stack that they can, and have the packages that stacks need to build and run."""

import re
import tomllib

import pytest

from conformance.lab import manifest, sources
from conformance.support import paths

ROOT = paths.PACKAGE.parent
TEXT = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
#: packages that every Debian 12 has
OF_DEBIAN = {"apt", "coreutils", "dpkg", "libc-bin", "libgnutls30", "sed"}
#: {package: what it has}: a program of another name, or another package
HAS = {"openjdk-17-jdk-headless": {"openjdk-17-jre-headless"}, "ngtcp2-server": {"gtlsserver"}}
HAS |= {"openjdk-17-jre-headless": {"java"}, "nginx-light": {"nginx"}}
#: stacks that are built only from a user's build
OWN = {"lsquic", "neqo", "picoquic", "quicly"}
IN_ALL = {"python3", "dpkg-query", "cat", "sed", "sha256sum", "sort"}


def stages():
    """Return {stage: its text, after that of the stages on which it is based}."""
    found = {}
    for text in re.split(r"^(?=FROM )", TEXT, flags=re.MULTILINE)[1:]:
        base, name = re.match(r"FROM (\S+) AS (\S+)", text).groups()
        found[name] = found.get(base, "") + text
    return found


def installed(stage):
    """Return the packages that a stage installs, and the programs and packages that these have."""
    words = {word for line in re.findall(r"apt-get install ([^&\n]*)", stages()[stage]) for word in line.split()}
    return words.union(*(HAS.get(word, ()) for word in words))


def stacks():
    """Return the adapters that the full image builds besides the slim one's."""
    return re.search(r'^ARG STACKS="([^"]*)"', TEXT, re.MULTILINE)[1].split()


def test_every_adapter_is_built_but_those_of_a_build_of_the_user_s():
    slim = re.search(r"conformance adapter build ((?:[a-z][\w.-]* )+)&&", stages()["small"] + stages()["build"])
    shipped = {about.name for about in manifest.shipped() if about.build} - OWN
    assert all(sources.homes(manifest.read(name)) for name in OWN)
    assert stacks() == sorted(shipped - set(slim[1].split()))


@pytest.mark.parametrize("name", stacks())
def test_what_a_stack_is_built_with_and_runs_on_is_there(name):
    about = manifest.read(name)
    assert set(about.packages) <= installed("build-full") | OF_DEBIAN
    assert set(about.needs) <= installed("full") | IN_ALL


def test_git_is_in_every_image():
    """Without git, there is no digest of a working tree that is a repository."""
    assert all("git" in installed(stage) for stage in ("build", "build-full"))
    copied = "COPY --from=build /usr/bin/git /usr/bin/git"
    assert all(copied in stages()[stage] for stage in ("slim", "full"))


def test_a_package_that_is_missing_would_be_noticed():
    assert "maven" in installed("build-full") - installed("full")
    assert "openjdk-17-jdk-headless" not in installed("full") and "java" in installed("full")


def test_builders_are_given_what_the_wheel_is_made_of_and_no_more():
    """If builders got other files, a change to these would cause a new build of every stack."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    given = {line[1:] for line in lines if line.startswith("!")}
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = about["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    assert lines.index("*") < lines.index(f"!{wheel[0]}")
    assert given == {*wheel, "image", "pyproject.toml", "LICENSE", about["project"]["readme"]}
    assert all((ROOT / name).exists() for name in given)
