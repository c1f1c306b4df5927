#!/usr/bin/env bash
# Goes from plugins/blas to text by the commands of docs/add-a-backend.md: builds the plugin against
# an installed Trine, outside of the source tree, lets the installed `trine plugin check` test it,
# and lets the shipped model read a prompt with it.
#
#   blas_test.sh PREFIX BINDIR WORK_DIR CMAKE GENERATOR CXX NM FLAGS
#
# Leaves WORK_DIR/build/libtrine-backend-blas.so. Exits with 77 (skipped) if no CBLAS is installed.
set -euo pipefail
prefix=$1 bindir=$2 work=$3 cmake=$4 generator=$5 cxx=$6 nm=$7 flags=${8:-}
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
plugin=$work/build/libtrine-backend-blas.so
trine=$prefix/$bindir/trine
prompt="Once upon a time there was a king who had three sons, and the youngest of them was so good"

fail() { echo "FAILED: $*"; exit 1; }

build_plugin() {
  # A copy, so that no header of the source tree can be found by accident.
  cp -r "$sources/plugins/blas" "$work/source"
  "$cmake" -G "$generator" -S "$work/source" -B "$work/build" "-DCMAKE_PREFIX_PATH=$prefix" \
    "-DCMAKE_CXX_COMPILER=$cxx" "-DCMAKE_CXX_FLAGS=$flags -Werror" >"$work/log" 2>&1 || {
    cat "$work/log"
    ! grep -q 'no CBLAS was found' "$work/log" || { echo "skipped: no CBLAS is installed"; exit 77; }
    exit 1
  }
  "$cmake" --build "$work/build"
  local symbols
  symbols=$("$nm" -D --defined-only "$plugin" | sed 's/^[0-9a-f]* //')
  [ "$symbols" = "T trine_plugin_query" ] ||
    fail "the plugin exports more, or less, than trine_plugin_query: $symbols"
}

generate() {  # arguments...: sets `text`, `errors` and `hash`
  local output
  output=$("$trine" generate --plugin "$plugin" -p "$prompt" -n 12 --temp 0 --logits-hash "$@" \
    2>"$work/errors") || { cat "$work/errors"; fail "trine generate $*"; }
  errors=$(cat "$work/errors")
  text=$(grep -v '^logits hash: ' <<<"$output")
  hash=$(sed -n 's/^logits hash: //p' <<<"$output")
}

# Expects that the result is text behind the prompt.
expect_text() {
  [[ $(tr '\n' ' ' <<<"$text") == "$prompt"* ]] || fail "no text behind the prompt: '$text'"
  [ ${#text} -gt $((${#prompt} + 12)) ] || fail "too little text: '$text'"
}

read_prompt_by_blas() {
  generate --numerics fast --dispatch 8
  expect_text
  [[ $errors == *"Tri-Tier: CPU("*"fast"*"prompts with blas0"* ]] || fail "no line of blas0: '$errors'"
  [[ $hash == fast-* ]] || fail "the hash is not marked: '$hash'"
  echo "$errors"
  echo "$text"
}

# Without permission the device is not used, and the option changes nothing.
stay_exact_without_permission() {
  generate --dispatch 8
  expect_text
  [ -z "$errors" ] || fail "the exact run says '$errors'"
  [[ $hash == 1-* ]] || fail "the exact run has the hash '$hash'"
}

use_options() {
  generate --numerics fast --dispatch 8 --plugin-option blas:tile=64
  expect_text
  local refusal
  if refusal=$("$trine" detect --plugin "$plugin" --plugin-option tile=7 2>&1); then
    fail "the option tile=7 is taken"
  fi
  [[ $refusal == *"the option tile is '7': expected 16 to 4096"* ]] || fail "tile=7: $refusal"
}

rm -rf "$work"
mkdir -p "$work"
build_plugin
# The build tree's libraries and plugins must not be used in place of installed ones, and a
# calibration of this machine must not decide what the test sees.
unset LD_LIBRARY_PATH TRINE_PLUGIN_PATH TRINE_PROBE
export TRINE_CALIBRATION=off
cd /
"$trine" plugin check "$plugin"
read_prompt_by_blas
stay_exact_without_permission
use_options
