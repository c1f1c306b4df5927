#!/usr/bin/env bash
# Compares the program of a first build with the whole command: the same text and logits hash, the
# same help, the same refusals. Then checks when tools/trine may use it.
#
#   first_test.sh FIRST WHOLE
set -euo pipefail
first=$1 whole=$2
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
fail() { echo "FAILED: $*"; failures=1; }

run() {  # program, output, arguments...: stores what the program prints, and its exit code
  local program=$1 out=$2 code=0
  shift 2
  "$program" "$@" >"$out" 2>&1 </dev/null || code=$?
  echo "exit $code" >>"$out"
}
for arguments in "generate -p Once --temp 0 -n 12 --logits-hash --device cpu" "generate --help" \
                 "chat --help" "generate --temp nothing" "generate -m /nowhere.gguf"; do
  run "$first" "$scratch/first" $arguments
  run "$whole" "$scratch/whole" $arguments
  diff "$scratch/first" "$scratch/whole" || fail "trine $arguments differs (< first, > whole)"
  code=$(tail -n 1 "$scratch/first")
  case $arguments,$code in
    *--logits-hash*,"exit 0") grep -q '^logits hash: 1-' "$scratch/first" || fail "no logits hash" ;;
    *--help,"exit 0" | *nothing,"exit 2" | */nowhere.gguf,"exit 1") ;;
    *) fail "trine $arguments: $code" ;;
  esac
done
# What a GPU backend needs is read from its sources.
names=$("$root/tools/first/machine" --names)
for file in /dev/dri /dev/kfd; do
  grep -qx "$file" <<<"$names" || fail "tools/first/machine misses $file"
done

source "$root/tools/setup.sh"
unset $(compgen -e TRINE_)
mkdir -p "$scratch/dir/first"
"$root/tools/first/machine" >"$scratch/dir/first/machine"
touch "$scratch/dir/build.ninja"
enough() { trine_first_is_enough "$scratch/dir" "$@" || fail "not enough for: $*"; }
too_little() { ! trine_first_is_enough "$scratch/dir" "$@" || fail "enough for: $*"; }
enough generate -p "A ship to the dgpu" -n 3
enough chat
too_little
too_little bench
too_little generate -ngl 4
too_little generate --tensor-split=3,1
too_little generate -dev Vulkan0
too_little chat --plugin here.so
TRINE_VULKAN_ALLOW_CPU=1 too_little generate
echo another >"$scratch/dir/first/machine"
too_little generate
rm "$scratch/dir/first/machine"
too_little generate
rm "$scratch/dir/build.ninja"
enough generate
exit $failures
