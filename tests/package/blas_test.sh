#!/usr/bin/env bash
# Builds plugins/blas against an installed Trine, outside of the source tree, and lets the installed
# `trine plugin check` test the plugin.
#
#   blas_test.sh PREFIX BINDIR WORK_DIR CMAKE GENERATOR CXX NM FLAGS
#
# Leaves WORK_DIR/build/libtrine-backend-blas.so. Exits with 77 (skipped) if no CBLAS is installed.
set -euo pipefail
prefix=$1 bindir=$2 work=$3 cmake=$4 generator=$5 cxx=$6 nm=$7 flags=${8:-}
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
plugin=$work/build/libtrine-backend-blas.so

rm -rf "$work"
mkdir -p "$work"
# A copy, so that no header of the source tree can be found by accident.
cp -r "$sources/plugins/blas" "$work/source"
"$cmake" -G "$generator" -S "$work/source" -B "$work/build" "-DCMAKE_PREFIX_PATH=$prefix" \
  "-DCMAKE_CXX_COMPILER=$cxx" "-DCMAKE_CXX_FLAGS=$flags -Werror" >"$work/log" 2>&1 || {
  cat "$work/log"
  ! grep -q 'no CBLAS was found' "$work/log" || { echo "skipped: no CBLAS is installed"; exit 77; }
  exit 1
}
"$cmake" --build "$work/build"

symbols=$("$nm" -D --defined-only "$plugin" | sed 's/^[0-9a-f]* //')
[ "$symbols" = "T trine_plugin_query" ] ||
  { echo "the plugin exports more, or less, than trine_plugin_query: $symbols"; exit 1; }

# The build tree's libraries and plugins must not be used in place of installed ones.
unset LD_LIBRARY_PATH TRINE_PLUGIN_PATH TRINE_PROBE
cd /
"$prefix/$bindir/trine" plugin check "$plugin"
