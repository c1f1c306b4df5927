#!/usr/bin/env bash
# run.sh PACKAGE@VERSION[,PACKAGE@VERSION...] SCRIPT [ARGUMENT...]
#
# Runs a Node script that may require() the named packages. The first time, installs them with their
# dependencies under $TRINE_NODE_DIR (default: build/node); later runs need no network. Exits with
# the script's code, or with 77, which CTest takes for "skipped", if Node or a package is missing.
# If CI or TRINE_REQUIRE_NODE is set that is a failure, so that nothing is skipped unseen.
set -euo pipefail

readonly oldest_node=18

skip() {  # why
  printf 'skipped: %s\n' "$*"
  if [ -n "${CI:-}${TRINE_REQUIRE_NODE:-}" ]; then
    printf 'but CI or TRINE_REQUIRE_NODE is set, so it must run\n'
    exit 1
  fi
  exit 77
}

if [ $# -lt 2 ]; then
  printf 'usage: %s PACKAGE@VERSION[,...] SCRIPT [ARGUMENT...]\n' "$0" >&2
  exit 2
fi
packages=$1
script=$2
shift 2
IFS=, read -r -a wanted <<<"$packages"

command -v node >/dev/null || skip "there is no 'node'"
major=$(node -p 'process.versions.node.split(".")[0]')
[ "$major" -ge "$oldest_node" ] || skip "node $major is older than $oldest_node"

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
base=${TRINE_NODE_DIR:-$root/build/node}
folder="$base/${packages//[^A-Za-z0-9._@-]/_}"
mkdir -p "$folder"

# Lock, so that two tests never install the same package at once. A stamp says that an installation
# was finished.
exec 9>"$folder/.lock"
flock 9
if [ ! -f "$folder/.installed" ]; then
  command -v npm >/dev/null || skip "there is no 'npm' to install $packages with"
  rm -rf "$folder/node_modules"
  printf '{"private": true}\n' >"$folder/package.json"
  timeout 180 npm install --prefix "$folder" --save-exact --ignore-scripts --no-audit --no-fund \
    --no-update-notifier --fetch-retries=1 --fetch-timeout=30000 "${wanted[@]}" \
    >"$folder/npm.log" 2>&1 9>&- </dev/null ||
    skip "npm can't install $packages: $(grep -v '^npm warn' "$folder/npm.log" | head -n 3 | tr '\n' ' ')"
  touch "$folder/.installed"
fi
exec 9>&-

NODE_PATH="$folder/node_modules" exec node "$script" "$@"
