#!/usr/bin/env bash
# The include check must pass each direction that is allowed and catch each that is not.
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

try() {  # expected ("ok" or "bad"), file, include
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/$(dirname "$2")"
  printf '#include %s\n' "$3" >"$tree/$2"
  local got=ok
  "$check" "$tree" >"$tree/out" 2>&1 || got=bad
  if [ "$got" != "$1" ] || { [ "$got" = bad ] && ! grep -q "$2:1: " "$tree/out"; }; then
    echo "$2 including $3: expected $1, got $got"
    cat "$tree/out"
    failed=1
  fi
}

try ok tools/cli/a.cc '"runtime/version.h"'
try ok tools/cli/a.cc '"plugins/conformance/check.h"'
try ok runtime/a.cc '"dispatch/inventory.h"'
try ok runtime/a.cc '"trine/trine.h"'
try ok dispatch/a.cc '"plugins/registry.h"'
try ok dispatch/a.cc '"kernels/quant/block_types.h"'
try ok plugins/a.cc '"trine/backend.h"'
try ok plugins/conformance/a.cc '"kernels/reference/ops.h"'
try ok backends/cpu/a.cc '"kernels/cpu/dot.h"'
try ok backends/cpu/a.cc '"detect/machine.h"'
try ok backends/cpu/a.cc '"trine/backend_sdk.h"'
try ok kernels/cpu/a.cc '"kernels/quant/dot.h"'
try ok detect/a.cc '<vector>'

try bad tools/cli/a.cc '"backends/cpu/plan.h"'
try bad tools/cli/a.cc '"kernels/reference/ops.h"'
try bad runtime/a.cc '"tools/cli/commands.h"'
try bad dispatch/a.cc '"runtime/version.h"'
try bad dispatch/a.cc '"trine/trine.h"'
try bad plugins/a.cc '"dispatch/inventory.h"'
try bad plugins/a.cc '"kernels/reference/ops.h"'
try bad plugins/a.cc '"plugins/conformance/kit.h"'
try bad plugins/include/trine/sdk/a.h '"plugins/registry.h"'
try bad plugins/example/a.cc '"kernels/reference/math.h"'
try bad backends/cpu/a.cc '"plugins/handles.h"'
try bad backends/cpu/a.cc '"backends/vulkan/queue.h"'
try bad backends/vulkan/a.cc '"dispatch/inventory.h"'
try bad kernels/cpu/a.cc '"trine/backend.h"'
try bad kernels/cpu/a.cc '"detect/machine.h"'
try bad kernels/quant/a.cc '"kernels/reference/math.h"'
try bad detect/a.cc '"plugins/registry.h"'
try bad detect/a.cc '  "kernels/quant/dot.h"'
try bad runtime/a.cc '"../tools/cli/commands.h"'
exit $failed
