#!/usr/bin/env bash
# Tests that the include check accepts each allowed direction and finds each forbidden one.
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

try ok tools/cli/a.cc '"runtime/base/version.h"'
try ok tools/cli/a.cc '"plugins/conformance/check.h"'
try ok runtime/a.cc '"dispatch/devices/inventory.h"'
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

try ok dispatch/cost/a.cc '"dispatch/exec/op_graph.h"'
try ok runtime/model/run/a.cc '"runtime/model/arch/segment_graph.h"'
try ok runtime/model/arch/a_test.cc '"runtime/model/run/model.h"'
try bad dispatch/exec/a.cc '"dispatch/cost/cost_model.h"'
try bad runtime/model/arch/a.h '"runtime/model/run/model.h"'
try bad kernels/cpu/simd/a.h '"kernels/cpu/product/pack.h"'
try ok runtime/model/run/a.cc '"runtime/gguf/gguf_file.h"'
try ok runtime/engine/a.cc '"runtime/batch/batcher.h"'
try bad runtime/batch/a.cc '"runtime/engine/engine.h"'
try bad runtime/model/run/a.cc '"runtime/kv/block_keeper.h"'
try bad backends/vulkan/memory/a.cc '"backends/vulkan/exec/queue.h"'
try bad tools/server/http/a.cc '"tools/server/service/api.h"'
try bad tools/cli/options/a.cc '"tools/cli/commands/commands.h"'

try bad tools/cli/a.cc '"backends/cpu/plan.h"'
try bad tools/cli/a.cc '"kernels/reference/ops.h"'
try bad runtime/a.cc '"tools/cli/commands/commands.h"'
try bad dispatch/a.cc '"runtime/base/version.h"'
try bad dispatch/a.cc '"trine/trine.h"'
try bad plugins/a.cc '"dispatch/devices/inventory.h"'
try bad plugins/a.cc '"kernels/reference/ops.h"'
try bad plugins/a.cc '"plugins/conformance/kit.h"'
try bad plugins/include/trine/sdk/a.h '"plugins/registry.h"'
try bad plugins/example/a.cc '"kernels/reference/math.h"'
try bad backends/cpu/a.cc '"plugins/handles.h"'
try bad backends/cpu/a.cc '"backends/vulkan/exec/queue.h"'
try bad backends/vulkan/a.cc '"dispatch/devices/inventory.h"'
try bad kernels/cpu/a.cc '"trine/backend.h"'
try bad kernels/cpu/a.cc '"detect/machine.h"'
try bad kernels/quant/a.cc '"kernels/reference/math.h"'
try bad detect/a.cc '"plugins/registry.h"'
try bad detect/a.cc '  "kernels/quant/dot.h"'
try bad runtime/a.cc '"../tools/cli/commands/commands.h"'
exit $failed
