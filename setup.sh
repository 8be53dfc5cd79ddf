#!/bin/sh
# Install what is missing: system packages (needs rights), then the virtual environment. Says what and why.
# `setup.sh quic` also builds what the suite's own tests need of QUIC: the common client, aioquic, and, on systems without
# ngtcp2 0.12, ngtcp2-1.11.
set -eu
cd "$(dirname "$0")"

missing="" stack=""
need() { # need PROGRAM PACKAGE REASON
    PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin" command -v "$1" > /dev/null 2>&1 && return
    case " $missing " in *" $2 "*) return ;; esac
    missing="$missing $2"
    echo "setup: $2 is missing: $3"
}

need gcc gcc "compiles the guest kernel"
need make make "compiles the guest kernel"
need flex flex "compiles the guest kernel"
need bison bison "compiles the guest kernel"
need bc bc "compiles the guest kernel"
need patch patch "applies our patches to the kernel source"
need strip binutils "strips the guest kernel"
need xz xz-utils "unpacks the kernel source"
need bzip2 bzip2 "unpacks the kernel source (Ubuntu)"
need tc iproute2 "sets up queues in guests"
need ifconfig net-tools "used by Mininet"
need mnexec mininet "builds the topologies in guests"
need nginx nginx-light "serves the transfers of linux-tcp"
need openssl openssl "makes the certificates"
[ -e /usr/include/stdio.h ] || { missing="$missing libc6-dev"; echo "setup: libc6-dev is missing: compiles the guest kernel"; }
[ -e /usr/include/openssl/ssl.h ] || { missing="$missing libssl-dev"; echo "setup: libssl-dev is missing: compiles the client of linux-tcp"; }
if [ "${1:-}" = quic ]; then
    /usr/bin/python3 -m pip --version > /dev/null 2>&1 || {
        missing="$missing python3-pip"
        echo "setup: python3-pip is missing: installs aioquic, the second server in the tests of the QUIC client"
    }
    case $(. /etc/os-release && echo "$ID $VERSION_ID") in
        "debian 12" | "ubuntu 24.04") need gtlsserver ngtcp2-server "serves the QUIC transfers of the tests" ;;
        *)
            stack=ngtcp2-1.11
            ls /usr/lib/*/libev.so.4 > /dev/null 2>&1 || {
                missing="$missing libev4"
                echo "setup: libev4 is missing: used by the server of $stack"
            }
            ;;
    esac
fi
python3 -c 'import ensurepip, venv' 2> /dev/null || {
    missing="$missing python3-venv"
    echo "setup: python3-venv is missing: makes the virtual environment"
}

if [ -n "$missing" ]; then
    if ! command -v apt-get > /dev/null; then
        echo "setup: this is not a Debian or Ubuntu system; install the like of:$missing" >&2
        exit 2
    elif [ "$(id -u)" = 0 ]; then
        as_root=""
    elif sudo -n true 2> /dev/null || { [ -t 0 ] && command -v sudo > /dev/null && sudo -v; }; then
        as_root="sudo"
    else
        echo "setup: installing needs rights that you lack. As root, run this, and then try again:" >&2
        echo "apt-get update && apt-get install --no-install-recommends$missing" >&2
        exit 2
    fi
    # Another program (a machine's nightly upgrades) may hold the lock for a while.
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q -o DPkg::Lock::Timeout=300
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y -o DPkg::Lock::Timeout=300 \
        --no-install-recommends $missing
elif command -v apt-cache > /dev/null && [ -z "$(apt-cache search --names-only '^linux-source-[0-9.]+$' 2> /dev/null)" ]; then
    # The kernel source comes from apt, whose lists a fresh machine may not have.
    if [ "$(id -u)" = 0 ]; then apt-get update -q; else sudo -n apt-get update -q || true; fi
fi

# An environment that was moved, or made for another python3, does not run.
if [ ! -e .venv/ready ] || [ requirements.lock -nt .venv/ready ] || [ pyproject.toml -nt .venv/ready ] ||
    ! .venv/bin/conformance --version > /dev/null 2>&1; then
    echo "setup: making the virtual environment .venv (versions and hashes from requirements.lock)"
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
        echo "setup: python3 is $(python3 -V), 3.11 or later is needed" >&2
        exit 2
    }
    .venv/bin/python -c "" 2> /dev/null || rm -rf .venv
    python3 -m venv .venv
    # The lock names all that is needed. Without --no-deps, pip takes the newest `coverage` for `coverage[toml]`, which
    # pytest-cov asks for, finds it is not the one of the lock, and gives up.
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
    touch .venv/ready
fi

if [ "${1:-}" = quic ]; then
    .venv/bin/conformance adapter build h3-client || echo "setup: without h3-client, tests over QUIC are skipped" >&2
    .venv/bin/conformance adapter build aioquic || echo "setup: without aioquic, tests of the QUIC client are skipped" >&2
fi
if [ -n "$stack" ]; then
    .venv/bin/conformance adapter build "$stack" || echo "setup: without $stack, tests over QUIC are skipped" >&2
fi
