#!/bin/sh
# Fails when an exact library holds a fused multiply-add: a compiler then ignored -ffp-contract=off.
# Exits with 77 (skipped) where there is no objdump.

command -v objdump > /dev/null || { echo "skipped: no objdump"; exit 77; }

# fmlal is allowed: kernels/cpu/product/ordered_row.h converts halves with it. A product of two
# halves is exact in a float, so fmlal gives the same result as a multiplication and an addition.
fused='[[:space:]](vfn?m(add|sub)[0-9a-z]*|fn?m(add|sub|ad|sb|la|ls)([0-9a-km-z][0-9a-z]*)?)[[:space:]]'
for library in "$@"; do
  # A cross-built library that this objdump cannot read is no proof of anything.
  listing=$(objdump -d "$library") || { echo "skipped: cannot read $library"; exit 77; }
  if printf '%s\n' "$listing" | grep -E "$fused"; then
    echo "FAILED: fused multiply-add in $library"
    exit 1
  fi
  echo "no fused multiply-add in $(basename "$library")"
done
