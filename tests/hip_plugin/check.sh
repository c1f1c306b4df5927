#!/bin/sh
# Runs the conformance kit: all of its checks, those of products alone, or all but those.
#
#   check.sh all|products|rules COMMAND...
#
# With TRINE_LONG it runs all checks in any case.
set -eu
case $1 in
  all) filter= ;;
  products) filter=matmul ;;
  rules) filter=-matmul/ ;;
esac
shift
[ -z "$filter" ] || [ -n "${TRINE_LONG:-}" ] || set -- "$@" "--filter=$filter"
exec "$@"
