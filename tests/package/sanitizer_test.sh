#!/usr/bin/env bash
# Checks the example backend, built with each sanitizer, by the commands of docs/add-a-backend.md: an
# installed Trine without a sanitizer, and the sanitizer's runtime in front of it. Sound plugins
# must conform, and a mistake that the sanitizer sees must be named.
#
#   sanitizer_test.sh PREFIX BINDIR DOCDIR WORK_DIR CMAKE GENERATOR CXX
#
# Without TRINE_LONG tries AddressSanitizer alone. Exits with 77 (skipped) if the compiler has no
# runtimes to put in front.
set -euo pipefail
prefix=$1 bindir=$2 docdir=$3 work=$4 cmake=$5 generator=$6 cxx=$7
trine=$prefix/$bindir/trine

fail() { echo "FAILED: $*"; exit 1; }

runtime() {  # the name of its file
  local path
  path=$("$cxx" -print-file-name="$1")
  # The compiler answers with the bare name if it has no such file.
  [[ $path == /* ]] || { echo "skipped: $cxx has no $1"; exit 77; }
  echo "$path"
}

build() {  # folder, source folder, flags
  "$cmake" -G "$generator" -S "$2" -B "$work/$1" "-DCMAKE_PREFIX_PATH=$prefix" \
    -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_COMPILER=$cxx" "-DCMAKE_CXX_FLAGS=$3 -Werror" \
    >"$work/$1.log" 2>&1 &&
    "$cmake" --build "$work/$1" >>"$work/$1.log" 2>&1 || { cat "$work/$1.log"; fail "build of $1"; }
}

check() {  # folder, runtime or "", arguments...
  local folder=$1 preload=$2
  shift 2
  env ${preload:+"LD_PRELOAD=$preload"} "$trine" plugin check "$@" \
    "$work/$folder/libtrine-backend-example.so"
}

expect_sound() {  # folder, runtime or "", flags
  build "$1" "$work/source" "$3"
  check "$1" "$2" || fail "the sound plugin with $3"
}

# Expects that the checks that the filter names fail with the text, and that others pass.
expect_found() {  # folder, runtime or "", flags, text, filter
  build "$1" "$work/source-$1" "$3"
  local output
  output=$(check "$1" "$2" --filter memory/ 2>&1) || fail "$1: memory/ fails: $output"
  if output=$(check "$1" "$2" --filter "$5" 2>&1); then fail "$1: nothing was found: $output"; fi
  [[ $output == *"$4"* ]] || fail "$1: '$4' is not said: $output"
  echo "$1: $4"
}

# Makes a copy of the example with a mistake: the line that holds the first text becomes the second.
spoil() {  # folder, line, replacement
  cp -r "$work/source" "$work/source-$1"
  local file=$work/source-$1/example_backend.cc
  grep -qF "$2" "$file" || fail "the example has no line '$2'"
  awk -v line="$2" -v other="$3" 'index($0, line) { print other; next } { print }' "$file" \
    >"$file.new"
  mv "$file.new" "$file"
}

rm -rf "$work"
mkdir -p "$work"
cp -r "$prefix/$docdir/example" "$work/source"
unset LD_LIBRARY_PATH TRINE_PLUGIN_PATH TRINE_PROBE
asan=$(runtime libasan.so)
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0
export TSAN_OPTIONS=allocator_may_return_null=1:halt_on_error=1
memory="-fsanitize=address,undefined -fno-sanitize-recover=undefined"
undefined="-fsanitize=undefined -fno-sanitize-recover=undefined"

expect_sound asan "$asan" "$memory"

# Without the runtime in front, the plugin is refused with the advice.
if refusal=$(check asan "" 2>&1); then fail "half a sanitizer is taken"; fi
[[ $refusal == *"built with AddressSanitizer"*LD_PRELOAD* ]] || fail "no advice: $refusal"

copy='const auto bytes = static_cast<size_t>(sdk::ValueBytes(x.dtype, x.dims[0]));'
spoil past-the-end "$copy" \
  "$copy volatile size_t one = 1; volatile char* it = new char[one]; it[one] = 0; delete[] it;"
expect_found past-the-end "$asan" "$memory" "heap-buffer-overflow" op/copy
# The other sanitizers are tried the same way.
[ -n "${TRINE_LONG:-}" ] || exit 0
tsan=$(runtime libtsan.so)
expect_sound tsan "$tsan" -fsanitize=thread
run='RunOp(run, op, Share{worker, workers});'
spoil race "$run" "static int count = 0; ++count; $run"
expect_found race "$tsan" -fsanitize=thread "ThreadSanitizer: data race" op/order
# Undefined behaviour alone needs no runtime in front.
spoil overflow "$copy" "$copy volatile int most = 2147483647; most = most + 1;"
expect_found overflow "" "$undefined" "signed integer overflow" op/copy
