#!/bin/sh
# Builds trine-kernel-check for the other architecture and runs it under qemu-user.
#
#   cross_test.sh HOST_ARCHITECTURE FOLDER
#
# The program is kept in FOLDER and built again when a source is newer. It has the highest of the
# levels that qemu can run, little optimised, and compares some of the cases. With
# TRINE_LONG it has all of these levels, as they are built for users, and compares all cases: that
# takes minutes for each level. Exits with 77 (skipped) and a reason without a cross compiler or an
# emulator.
set -eu

folder=$2
here=$(cd "$(dirname "$0")" && pwd)
case $1 in
  x86_64) other=aarch64 levels=i8mm all_levels='baseline dotprod i8mm' ;;
  aarch64) other=x86_64 levels=avx2 all_levels='baseline avx2' ;;
  *) echo "skipped: no other architecture to try"; exit 77 ;;
esac
compiler=$other-linux-gnu-g++
emulator=$(command -v "qemu-$other" || command -v "qemu-$other-static" || true)
command -v "$compiler" > /dev/null || { echo "skipped: no $compiler"; exit 77; }
[ -n "$emulator" ] || { echo "skipped: no qemu-$other"; exit 77; }

program=$folder/trine-kernel-check-$other
some=--some optimisation=-O1
if [ -n "${TRINE_LONG:-}" ]; then
  program=$program-long some= levels=$all_levels optimisation=-O3
fi
mkdir -p "$folder"
# A program that was built by other scripts is another program.
program=$program-$(cat "$0" "$here/build_kernel_check.sh" | cksum | cut -d' ' -f1)
if [ ! -e "$program" ] || [ -n "$(find "$here/../.." -name '*.cc' -newer "$program" -o -name '*.h' \
    -newer "$program" -o -name '*.txt' -newer "$program")" ]; then
  cached=$compiler
  if command -v ccache > /dev/null; then cached="ccache $compiler"; fi
  sh "$here/build_kernel_check.sh" "$cached" "$program" "$levels" "$optimisation"
fi
status=0
"$emulator" -cpu max "$program" $some $levels || status=$?
[ $status != 2 ] || { echo "skipped: $emulator can't run a level"; exit 77; }
exit $status
