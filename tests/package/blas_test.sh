#!/usr/bin/env bash
# Goes from plugins/blas to text by the commands of docs/add-a-backend.md: builds the plugin against
# an installed Trine, outside of the source tree, lets the installed `trine plugin check` test it,
# and lets the shipped model read a prompt with it. Does so for each library that is installed, by
# the option `library`, and for the plugin's own choice.
#
#   blas_test.sh PREFIX BINDIR WORK_DIR CMAKE GENERATOR CXX NM FLAGS
#
# Leaves WORK_DIR/build/libtrine-backend-blas.so. Exits with 77 (skipped) if neither a CBLAS nor
# oneDNN is installed.
set -euo pipefail
prefix=$1 bindir=$2 work=$3 cmake=$4 generator=$5 cxx=$6 nm=$7 flags=${8:-}
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
plugin=$work/build/libtrine-backend-blas.so
trine=$prefix/$bindir/trine
prompt="Once upon a time there was a king who had three sons, and the youngest of them was so good"

fail() { echo "FAILED: $*"; exit 1; }

configure() {  # folder, arguments of CMake...
  local build=$1
  shift
  "$cmake" -G "$generator" -S "$work/source" -B "$build" "-DCMAKE_PREFIX_PATH=$prefix" \
    "-DCMAKE_CXX_COMPILER=$cxx" "-DCMAKE_CXX_FLAGS=$flags -Werror" "$@" >"$work/log" 2>&1
}

no_library="no library of matrix products was found"

build_plugin() {
  # A copy, so that no header of the source tree can be found by accident.
  cp -r "$sources/plugins/blas" "$work/source"
  configure "$work/build" || {
    cat "$work/log"
    ! grep -q "$no_library" "$work/log" || { echo "skipped: $no_library"; exit 77; }
    exit 1
  }
  libraries=()
  ! grep -q '^-- CBLAS: /' "$work/log" || libraries+=(cblas)
  ! grep -q '^-- oneDNN: /' "$work/log" || libraries+=(onednn)
  echo "libraries: ${libraries[*]}"
  "$cmake" --build "$work/build" --target trine-backend-blas product_test
  local symbols
  symbols=$("$nm" -D --defined-only "$plugin" | sed 's/^[0-9a-f]* //')
  [ "$symbols" = "T trine_plugin_query" ] ||
    fail "the plugin exports more, or less, than trine_plugin_query: $symbols"
}

# Tests the arithmetic itself, and that no library starts threads.
test_products() {
  OMP_NUM_THREADS=4 "$work/build/product_test" || fail "product_test"
}

# Without any library there is no plugin. With one of two it is built, too.
build_without() {
  ! configure "$work/without" -DWITH_CBLAS=OFF -DWITH_ONEDNN=OFF ||
    fail "CMake made a plugin without libraries"
  grep -q "$no_library" "$work/log" || { cat "$work/log"; fail "CMake does not say what it lacks"; }
  [ ${#libraries[@]} = 2 ] || return 0
  build_with_one CBLAS ONEDNN
  build_with_one ONEDNN CBLAS
}

build_with_one() {  # which, and which not
  configure "$work/without" "-DWITH_$1=ON" "-DWITH_$2=OFF" ||
    { cat "$work/log"; fail "CMake with $1 alone"; }
  "$cmake" --build "$work/without" --target product_test
  [ "$("$work/without/product_test" | grep -c ': tested$')" = 1 ] || fail "product_test of $1 alone"
}

expect_refusal() {  # plugin, option, sentence
  local refusal
  if refusal=$("$trine" detect --plugin "$1" --plugin-option "$2" 2>&1); then
    fail "the option $2 is taken"
  fi
  [[ $refusal == *"$3"* ]] || fail "$2: $refusal"
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

read_prompt_by_blas() {  # arguments...
  generate --numerics fast --dispatch 8 "$@"
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
  expect_refusal "$plugin" tile=7 "the option tile is '7': expected 16 to 4096"
  expect_refusal "$plugin" library=mkl "the option library is 'mkl': this plugin can use"
}

# A oneDNN that has threads of another kind than OpenMP's, or that makes no engine, is not used. A
# library that is loaded before it says so in its place. A sanitizer would have to be loaded first.
avoid_onednn() {
  [[ " ${libraries[*]} " == *" onednn "* && -z $flags ]] || return 0
  cat >"$work/threads.cc" <<'END'
#include <oneapi/dnnl/dnnl.h>
extern "C" const dnnl_version_t* dnnl_version() {
  static const dnnl_version_t version{2, 6, 0, "", DNNL_RUNTIME_TBB, DNNL_RUNTIME_NONE};
  return &version;
}
END
  cat >"$work/engine.cc" <<'END'
#include <oneapi/dnnl/dnnl.h>
extern "C" dnnl_status_t dnnl_engine_create(dnnl_engine_t*, dnnl_engine_kind_t, size_t) {
  return dnnl_out_of_memory;
}
END
  local what others=none tested
  [ ${#libraries[@]} = 1 ] || others=cblas
  for what in threads engine; do
    "$cxx" -shared -fPIC -o "$work/lib$what.so" "$work/$what.cc"
    tested=$(LD_PRELOAD="$work/lib$what.so" "$work/build/product_test") ||
      fail "product_test where oneDNN can't be used ($what)"
    [ "$(grep -c ': tested$' <<<"$tested")" = $((${#libraries[@]} - 1)) ] ||
      fail "oneDNN is used ($what): $tested"
    LD_PRELOAD="$work/lib$what.so" expect_refusal "$plugin" library=onednn \
      "the option library is 'onednn': this plugin can use $others"
    [ $others = cblas ] || LD_PRELOAD="$work/lib$what.so" expect_refusal "$plugin" tile=64 \
      "this plugin can use no library of matrix products here"
  done
}

# An OpenBLAS without threads is not used: it hands the same memory to all threads that call it.
avoid_serial_cblas() {
  [[ " ${libraries[*]} " == *" cblas "* && -z $flags ]] || return 0
  echo 'extern "C" int openblas_get_parallel() { return 0; }' >"$work/serial.cc"
  "$cxx" -shared -fPIC -o "$work/libserial.so" "$work/serial.cc"
  local others=none
  [ ${#libraries[@]} = 1 ] || others=onednn
  LD_PRELOAD="$work/libserial.so" expect_refusal "$plugin" library=cblas \
    "the option library is 'cblas': this plugin can use $others"
}

use_each_library() {
  local library
  for library in "${libraries[@]}"; do
    "$trine" plugin check --options "library=$library" "$plugin"
    read_prompt_by_blas --plugin-option "blas:library=$library"
  done
}

rm -rf "$work"
mkdir -p "$work"
build_plugin
# The build tree's libraries and plugins must not be used in place of installed ones, and a
# calibration of this machine must not decide what the test sees.
unset LD_LIBRARY_PATH TRINE_PLUGIN_PATH TRINE_PROBE
export TRINE_CALIBRATION=off
cd /
test_products
"$trine" plugin check "$plugin"
read_prompt_by_blas
stay_exact_without_permission
use_options
use_each_library
avoid_onednn
avoid_serial_cblas
build_without
