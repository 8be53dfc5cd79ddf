"""What adapters say of themselves: `describe` asks the programs that guests find, and fails if one is missing."""

import re
import subprocess

import pytest

from conformance.lab import adapter, manifest
from conformance.model.errors import UserError
from conformance.support import paths

#: what Debian always has
TOOLS = ("cat", "cut", "grep", "paste", "sed", "sha256sum", "tr")
NGINX = "echo 'nginx version: nginx/1.22.1' >&2"
GTLSSERVER = "echo '  --cc=(cubic|reno|bbr)'"
#: it has a package for every pattern
DPKG_QUERY = 'shift 3; echo "installed ${1%%[[*]*} 0.12.1"'
VERSIONS = paths.data("adapters", "common", "package-versions").read_text()
DESCRIBED = """echo '{"version": "x 1.2"}'"""
LSQUIC = """# lsquic/4.9.3
echo '   -A CC_ALGO
                   1: Cubic
   -g          Use sendmmsg() to send packets.'"""
NEQO = """case "$1" in
    --version) echo neqo-bin 0.30.1 ;;
    *) echo '      --cc <CONGESTION_CONTROL>
          [possible values: newreno, cubic]' ;;
esac"""
PICOQUIC = """case "$1" in
    -h) echo '  -G cc_algorithm
        newreno, cubic.' ;;
    *) echo 'Starting Picoquic (v1.1.52)' ;;
esac"""
#: {adapter: ({file on PATH (bin) or among what is built (build): its text, or what it does as a program}, version)}
PARTS = {
    "google-quiche": (
        {"build/envoy": "echo 'envoy  version: c/1.40.0/Clean/RELEASE/BoringSSL'"},
        "QUICHE of Envoy 1.40.0",
    ),
    "google-quiche-options": ({"build/run-server": DESCRIBED, "build/run-client": DESCRIBED}, "x 1.2; client x 1.2"),
    "h3-client": ({"build/versions": "ngtcp2 1.11.0, boringssl 14"}, "ngtcp2 1.11.0, boringssl 14"),
    "haproxy": ({"build/versions": "haproxy 3.0"}, "haproxy 3.0"),
    "kwik": (
        {
            "bin/java": """echo 'openjdk version "17.0.18" 2026-01-20' >&2""",
            "build/jars/kwik-0.10.8.jar": "",
            "build/jars/flupke-0.9.4.jar": "",
        },
        "kwik-0.10.8, flupke-0.9.4, Java 17.0.18",
    ),
    "linux-tcp": (
        {"bin/nginx": NGINX, "build/client": "echo OpenSSL 3.0.19 27 Jan 2026"},
        "nginx/1.22.1, OpenSSL 3.0.19",
    ),
    "linux-tcp-h2": (
        {"bin/nginx": NGINX, "bin/curl": "echo 'curl 7.88.1 libcurl/7.88.1 OpenSSL/3.0.19 nghttp2/1.52.0'"},
        "nginx/1.22.1, libcurl/7.88.1 OpenSSL/3.0.19 nghttp2/1.52.0",
    ),
    "lsquic": ({"build/http_server": LSQUIC}, r"lsquic 4\.9\.3 \(build \w{8}\)"),
    "neqo": (
        {"build/neqo-server": NEQO, "build/nss-version": "NSS 3.124"},
        r"neqo 0\.30\.1 \(build \w{8}\), NSS 3\.124",
    ),
    "nginx-quic": ({"build/versions": "nginx 1.26"}, "nginx 1.26"),
    "ngtcp2": (
        {"bin/dpkg-query": DPKG_QUERY, "bin/gtlsserver": GTLSSERVER, "build/package-versions": VERSIONS},
        "libgnutls30 0.12.1, libnghttp3- 0.12.1, libngtcp2- 0.12.1, ngtcp2-server 0.12.1",
    ),
    "ngtcp2-1.11": (
        {
            "bin/dpkg-query": DPKG_QUERY,
            "build/gtlsserver": GTLSSERVER,
            "build/package-versions": VERSIONS,
            "build/versions": "ngtcp2-server 1.11.0",
        },
        "ngtcp2-server 1.11.0, libgnutls30 0.12.1",
    ),
    "openssl-quic": ({"build/versions": "libssl3t64 3.5.1"}, "libssl3t64 3.5.1"),
    "picoquic": ({"build/picoquicdemo": PICOQUIC}, r"picoquic 1\.1\.52 \(build \w{8}\)"),
    "quicly": ({"build/h2o": "echo h2o version 2.3.0-DEV@0123"}, r"quicly of h2o 2\.3\.0-DEV@0123 \(build \w{8}\)"),
}
#: {adapter in Python: library without which it does not start}
LIBRARIES = {"aioquic": "aioquic", "linux-tcp-h2-hypercorn": "hypercorn"}
#: adapters that ask for nothing but Python
ASK_NOTHING = ("interop", "scaffold/tcp/python")
SCAFFOLDS = {
    f"scaffold/{file.parent.relative_to(paths.PACKAGE / 'scaffold')}": file.parent / manifest.read(str(file)).program
    for file in sorted((paths.PACKAGE / "scaffold").glob("*/*/adapter.json"))
}
PROGRAMS = {about.name: about.folder / about.program for about in manifest.shipped()} | SCAFFOLDS
DESCRIBING = sorted(PROGRAMS.keys() - LIBRARIES.keys())


def parts_of(name):
    """Return what an adapter's `describe` asks, and the version that it makes of that."""
    if name in PARTS:
        return PARTS[name]
    if name in ASK_NOTHING:
        return {}, ".+"
    (program,) = set(re.findall(r'\bexec "\$CC_BUILD/([^"]+)" "\$[@1]"', PROGRAMS[name].read_text()))
    return {f"build/{program}": DESCRIBED}, "x 1.2"


@pytest.fixture
def describe(tmp_path, monkeypatch):
    """Return a function that makes parts, lets an adapter describe itself with them, and returns its version."""
    monkeypatch.setattr(manifest, "GUEST_PATH", f"{tmp_path}/tools:{tmp_path}/bin")
    for folder in ("tools", "bin", "build"):
        (tmp_path / folder).mkdir()
    for tool in TOOLS:
        (tmp_path / "tools" / tool).symlink_to(f"/usr/bin/{tool}")

    def run(name, parts):
        for place, text in parts.items():
            file = tmp_path / place
            file.parent.mkdir(exist_ok=True)
            is_whole = text.startswith("#!") or file.name.endswith("version") or file.name.endswith("versions")
            file.write_text(text if is_whole else f"#!/bin/sh\n{text}\n")
            file.chmod(0o755)
        return adapter._describe(PROGRAMS[name], tmp_path / "build")[0]

    return run


@pytest.mark.parametrize("name", DESCRIBING)
def test_a_stack_has_a_version_where_all_that_it_asks_is_there(describe, name):
    parts, version = parts_of(name)
    assert re.fullmatch(version, describe(name, parts))


@pytest.mark.parametrize(("name", "lacking"), [(name, part) for name in DESCRIBING for part in parts_of(name)[0]])
def test_a_stack_has_no_version_and_names_what_is_missing_in_a_line(describe, name, lacking):
    parts, _ = parts_of(name)
    with pytest.raises(UserError) as failure:
        describe(name, {place: text for place, text in parts.items() if place != lacking})
    assert "\n" not in failure.value.cause
    of_a_jar, version, _ = lacking.partition("-0.")
    assert (of_a_jar if version else lacking.rpartition("/")[2]) in failure.value.cause


@pytest.mark.parametrize(("name", "library"), LIBRARIES.items())
def test_a_python_stack_has_no_version_without_its_library(describe, name, library):
    with pytest.raises(UserError, match=f"No module named '{library}'"):
        describe(name, {})


def test_a_version_that_says_not_found_is_refused(describe, tmp_path, monkeypatch):
    program = tmp_path / "stack"
    program.write_text("""#!/bin/sh\nprintf '{"version": "%s"}' "$(my-server --version 2>&1)"\n""")
    program.chmod(0o755)
    monkeypatch.setitem(PROGRAMS, "own", program)
    with pytest.raises(UserError, match=r"names a program or library that is missing: .*my-server: not found"):
        describe("own", {})
    assert describe("own", {"bin/my-server": "echo 1.2"}) == "1.2"


def dpkg_query(*packages):
    """Return a stand-in for dpkg-query that knows these packages, each "name version"."""
    each = (f"case '{package.split()[0]}' in $1) echo 'installed {package}' ;; esac" for package in packages)
    return "\n".join(("shift 3", *each))


def test_kwik_reads_the_version_of_any_java(describe):
    parts, _ = parts_of("kwik")
    other = describe("kwik", {**parts, "bin/java": """echo 'java version "21.0.9" 2025-10-21 LTS' >&2"""})
    assert other == "kwik-0.10.8, flupke-0.9.4, Java 21.0.9"
    with pytest.raises(UserError, match=r"java does not say its version: something else"):
        describe("kwik", {**parts, "bin/java": "echo something else >&2"})


def test_ngtcp2_refuses_a_server_in_which_algorithms_are_called_otherwise(describe):
    """From 1.0 on, --cc=bbr is what 0.12 calls bbr2, or version 3."""
    newer = ("libgnutls30t64 3.8.9", "libnghttp3-9 1.8.0", "libngtcp2-16 1.11.0", "ngtcp2-server 1.11.0-1+deb13u1")
    parts, _ = parts_of("ngtcp2")
    with pytest.raises(UserError, match=r"ngtcp2-server is 1\.11\.0-1\+deb13u1 here, not 0\.12: take the stack "):
        describe("ngtcp2", {**parts, "bin/dpkg-query": dpkg_query(*newer)})


@pytest.mark.parametrize(
    ("known", "version"),
    [
        ("installed libgnutls30 3.7.9", "libgnutls30 3.7.9"),
        ("not-installed libgnutls30 \ninstalled libgnutls30t64 3.8.3", "libgnutls30t64 3.8.3"),
        ("installed a 1\ninstalled b 2", "a 1, b 2"),
        ("not-installed libgnutls30 ", None),
        ("config-files libgnutls30 3.7.9", None),
    ],
)
def test_only_installed_packages_have_a_version(tmp_path, known, version):
    """In Ubuntu 24.04, libgnutls30t64 provides libgnutls30, for which dpkg prints a name without a version."""
    (tmp_path / "dpkg-query").write_text(f"#!/bin/sh\necho '{known}'\n")
    (tmp_path / "dpkg-query").chmod(0o755)
    program = paths.data("adapters", "common", "package-versions")
    done = subprocess.run([program, "libgnutls30*"], env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    if version is None:
        assert (done.returncode, done.stderr) == (1, "no package libgnutls30* is installed\n")
    else:
        assert (done.returncode, done.stdout) == (0, f"{version}\n")
