#!/usr/bin/env bash
# Lets AMD's compiler read the kernels, for a device and for the host, without making code:
#
#   kernels_read_test.sh PROJECT FLAGS SOURCE...
#
# FLAGS are separated by '|'. Warnings are errors. Skipped (77) without hipcc, which is a failure
# where TRINE_REQUIRE_HIP is set.
set -euo pipefail
project=$1
IFS='|' read -r -a flags <<<"$2"
shift 2
if ! command -v hipcc >/dev/null; then
  echo "skipped: there is no hipcc"
  [ -z "${TRINE_REQUIRE_HIP:-}" ] || { echo "TRINE_REQUIRE_HIP is set: this is a failure"; exit 1; }
  exit 77
fi
read_as() {  # side flags... source
  HIP_PLATFORM=amd hipcc "${flags[@]}" -Werror --offload-arch=gfx1100 -DNDEBUG "-I$project" -c "$@" ||
    { echo "$1: ${*: -1}"; return 1; }
}

# For the device, -fsyntax-only reads nothing.
status=0
for source in "$@"; do
  read_as --offload-device-only -emit-llvm -Xclang -disable-llvm-passes -o /dev/null "$source" ||
    status=1
  read_as --offload-host-only -fsyntax-only "$source" || status=1
done
exit $status
