#!/bin/sh
# Builds trine-kernel-check without CMake and without a library, for whatever the compiler compiles
# for:
#
#   kernels/cpu/check/build_kernel_check.sh COMPILER OUTPUT [LEVELS [OPTIMISATION]]
#
# OUTPUT is linked statically, so that qemu-user needs nothing of the other machine to run it. LEVELS,
# such as 'baseline avx2', are the ones to build, instead of all: most of the time goes into them.
# OPTIMISATION is for the levels and the comparisons: -O3 unless given. -O1 takes half the time to
# compile.
set -eu

[ $# -ge 2 ] && [ $# -le 4 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }
compiler=$1
output=$2
optimisation=${4:--O3}
here=$(cd "$(dirname "$0")/.." && pwd)
root=$(cd "$here/../.." && pwd)
architecture=$($compiler -dumpmachine | cut -d- -f1)
levels=$(sed -n "s/^$architecture \([a-z0-9]*\) .*/\1/p" "$here/levels/levels.txt")
[ -n "$levels" ] || { echo "there are no levels for $architecture"; exit 2; }
some=
if [ $# -ge 3 ]; then
  for level in $3; do
    echo "$levels" | grep -qx "$level" || { echo "$architecture has no level $level"; exit 2; }
  done
  levels=$3
  some=-DTRINE_CPU_SOME_LEVELS
fi

level_sources='attention/attention check/vec_math_probe levels/table ops/copy ops/elementwise
  ops/gather_rows ops/norm product/chunk_tile product/dot_float product/dot_packed
  product/dot_quantized product/expand_records product/matmul product/pack
  product/quantize_activations product/record_product'
check_sources='check/activation_check check/float_check check/float_check_attention
  check/float_check_math check/kernel_check check/product_check check/product_tensors
  levels/host_features levels/levels levels/reference_level'
quant_sources='activation block_types dequantize'
reference_sources='attention copy elementwise matmul moe norm'

objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT

# GCC 12 drops calls by a wrong analysis (tools/cmake/TrineTargets.cmake).
mend=
! echo | $compiler -fno-ipa-modref -x c++ -fsyntax-only - 2>/dev/null || mend=-fno-ipa-modref

# compile TAG FOLDER "SOURCES" FLAGS...
compile() {
  tag=$1 folder=$2 sources=$3
  shift 3
  for source in $sources; do
    $compiler -std=c++20 -O3 -ffp-contract=off -fno-rtti $mend -I"$root" "$@" \
      -c "$folder/$source.cc" -o "$objects/$tag-${source##*/}.o" || return 1
  done
}

jobs=
compile quant "$root/kernels/quant" "$quant_sources" & jobs="$jobs $!"
compile reference "$root/kernels/reference" "$reference_sources" & jobs="$jobs $!"
compile check "$here" "$check_sources" $some "$optimisation" & jobs="$jobs $!"
for level in $levels; do
  # shellcheck disable=SC2046
  compile "$level" "$here" "$level_sources" -DTRINE_CPU_LEVEL="$level" -fno-exceptions "$optimisation" \
    $(sed -n "s/^$architecture $level //p" "$here/levels/levels.txt") &
  jobs="$jobs $!"
done
failed=
for job in $jobs; do wait "$job" || failed=yes; done
[ -z "$failed" ] || exit 1
# Without libm, which nothing here uses: the static libm of some cross compilers can't be linked.
$compiler -static -nodefaultlibs -o "$output" "$objects"/*.o -lstdc++ \
  -Wl,--start-group -lgcc -lgcc_eh -lc -Wl,--end-group
