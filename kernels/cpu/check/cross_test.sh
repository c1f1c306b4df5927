#!/bin/sh
# Builds trine-kernel-check for the other architecture and runs it under qemu-user.
#
#   cross_test.sh HOST_ARCHITECTURE FOLDER
#
# The program is kept in FOLDER and built again when a source is newer. It has only the levels that
# qemu can run. Without TRINE_LONG the lowest and the highest of them are compared, because each
# takes minutes. Exits with 77 (skipped) and a reason without a cross compiler or an emulator.
set -eu

folder=$2
here=$(cd "$(dirname "$0")" && pwd)
case $1 in
  x86_64) other=aarch64 levels='baseline dotprod i8mm' compared='baseline i8mm' ;;
  aarch64) other=x86_64 levels='baseline avx2' compared='baseline avx2' ;;
  *) echo "skipped: no other architecture to try"; exit 77 ;;
esac
compiler=$other-linux-gnu-g++
emulator=$(command -v "qemu-$other" || command -v "qemu-$other-static" || true)
command -v "$compiler" > /dev/null || { echo "skipped: no $compiler"; exit 77; }
[ -n "$emulator" ] || { echo "skipped: no qemu-$other"; exit 77; }

program=$folder/trine-kernel-check-$other
mkdir -p "$folder"
if [ ! -e "$program" ] || [ -n "$(find "$here/../.." -name '*.cc' -newer "$program" -o -name '*.h' \
    -newer "$program" -o -name '*.txt' -newer "$program")" ]; then
  cached=$compiler
  if command -v ccache > /dev/null; then cached="ccache $compiler"; fi
  sh "$here/build_kernel_check.sh" "$cached" "$program" "$levels"
fi
if [ -n "${TRINE_LONG:-}" ]; then compared=$levels; fi
"$emulator" -cpu max "$program" $compared
