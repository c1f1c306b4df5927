#!/bin/sh
# Runs the conformance kit: all of its checks, or those of products alone.
#
#   check.sh all|products COMMAND...
#
# With TRINE_LONG it runs all checks in any case.
set -eu
checks=$1
shift
[ "$checks" = all ] || [ -n "${TRINE_LONG:-}" ] || set -- "$@" --filter matmul
exec "$@"
