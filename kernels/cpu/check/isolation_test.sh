#!/bin/sh
# Fails when the objects of one instruction set level define a symbol that the linker could lend to
# another level, or to the rest of the program: one whose name does not hold the level's namespace,
# such as an inline function of a header. A processor without the level's instructions would then
# execute them.
#
#   isolation_test.sh LEVEL OBJECT...
#
# Exits with 77 (skipped) if there is no nm.

command -v nm > /dev/null || { echo "skipped: no nm"; exit 77; }

level=$1
shift
own="5trine11cpu_kernels${#level}${level}"  # as the compiler writes it
# Upper-case letters are global or weak symbols, u is a unique one.
symbols=$(nm --defined-only "$@") || { echo "skipped: cannot read the objects"; exit 77; }
found=$(printf '%s\n' "$symbols" | awk -v own="$own" '
  NF == 3 && $2 ~ /^[A-Zu]$/ { total++; if (index($3, own) == 0) print $2, $3 }
  END { if (total == 0) print "no global symbols at all: are these the objects?" }')
if [ -n "$found" ]; then
  echo "FAILED: objects of level $level define"
  printf '%s\n' "$found" | c++filt
  exit 1
fi
echo "level $level keeps to itself: $# objects"
