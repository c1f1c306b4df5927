# Sourced by tools/trine and tools/test: installs what is missing, configures and builds a preset.
# Quick when nothing has changed: one dpkg-query, one ninja.

unset CDPATH
set +o noclobber
trine_root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)

# Seconds of one core that builds are expected to take: the program of a first build, the whole
# command, and the command with the suite. tools/build_report shows what a build took.
trine_first_seconds=420
trine_command_seconds=900
trine_suite_seconds=1000

# package: what is lost without it. The first list is needed, the second is not.
trine_required_packages=(
  "cmake: nothing can be configured"
  "ninja-build: nothing can be built"
  "g++: nothing can be compiled"
  "pkg-config: hwloc is not found"
  "libabsl-dev: nothing can be compiled"
  "nlohmann-json3-dev: nothing can be compiled"
  "libcli11-dev: nothing can be compiled"
  "libpcre2-dev: nothing can be compiled"
  "nettle-dev: nothing can be compiled"
  "libboost1.81-dev: nothing can be compiled"
)
trine_optional_packages=(
  "ccache: rebuilding from scratch is slow"
  "libhwloc-dev: topology is read from sysfs alone"
  "libbenchmark-dev: trine-microbench is not built"
  "libvulkan-dev: the Vulkan backend is not built"
  "glslc: the Vulkan backend is not built"
  "spirv-tools: the Vulkan backend is not built"
)
trine_test_packages=(
  "libgtest-dev: the tests can't be built"
  "libgmock-dev: the tests can't be built"
  "clang: the ABI header is not tried with a second compiler"
  "clang-format: the format check is skipped"
  "dpkg-dev: the Debian packages are not tried"
  "file: the Debian packages are not tried"
  "groff-base: the manual pages are not formatted"
  "python3: the comparison with other engines is not tried"
  "mesa-vulkan-drivers: the Vulkan backend has no driver to be tried on"
  "vulkan-validationlayers: the Vulkan backend is not tried under validation"
  "mmdebstrap: the Debian packages are not installed in a whole system (--long)"
  "zsh: its completions are not tried"
  "fish: its completions are not tried"
  "hipcc: kernels are not compiled for AMD's GPUs"
  "libopenblas-pthread-dev: the BLAS backend is not built and tried on OpenBLAS"
  "libdnnl-dev: the BLAS backend is not built and tried on oneDNN"
  "chromium: the server's page is not tried in a browser"
  "fonts-dejavu-core: the server's page is tried without letters"
)
# For tools/test --long.
trine_long_packages=(
  "clang-19: kernels are not compiled for AMD's newest GPUs"
  "lld-19: kernels are not compiled for AMD's newest GPUs"
  "clang-tools-19: kernels are not compiled for AMD's newest GPUs"
  "llvm-19: what is compiled for AMD's newest GPUs is not looked into"
)

# What some tests are compared with comes from npm. Node may be there without being a package.
command -v node >/dev/null || trine_test_packages+=("nodejs: templates and grammars are not compared with npm's, the server's page is not tried")
command -v npm >/dev/null || trine_test_packages+=("npm: templates and grammars are not compared with npm's")

# Kernels of the other architecture are tried under an emulator.
case $(uname -m) in
  x86_64) trine_test_packages+=("g++-aarch64-linux-gnu: NEON kernels are not tried") ;;
  aarch64) trine_test_packages+=("g++-x86-64-linux-gnu: AVX2 kernels are not tried") ;;
esac
trine_test_packages+=("qemu-user: kernels of other architectures are not tried")

trine_say() { printf '%s\n' "$*" >&2; }

trine_missing() {  # of the packages named
  # It fails where one of them was never heard of, and has told of the others all the same.
  { dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true; } |
    awk '$2 == "installed" { print $1 }' | sort -u |
    comm -13 - <(printf '%s\n' "$@" | sort -u)
}

trine_as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# Installs what is missing of the given "package: loss" lines. Fails only for a needed package.
trine_install() {
  local entries=("$@") names=() missing entry name
  for entry in "${entries[@]}"; do names+=("${entry%%:*}"); done
  if ! command -v dpkg-query >/dev/null; then
    trine_say "trine: not a Debian system; these packages or their like are needed: ${names[*]}"
    return 0
  fi
  missing=$(trine_missing "${names[@]}")
  [ -n "$missing" ] || return 0
  # What could not be had is not asked for again until tomorrow, or until something has changed.
  local stamp="$trine_root/build/.packages-missing"
  if [ "$(cat "$stamp" 2>/dev/null)" = "$missing" ] &&
     [ -n "$(find "$stamp" -mmin -1440 2>/dev/null)" ]; then
    trine_say "trine: still missing (tried within a day; remove build/.packages-missing to retry):" $missing
    return 0
  fi
  trine_say "trine: installing" $missing
  local log; log=$(mktemp)
  if ! { trine_as_root apt-get update -qq &&
         DEBIAN_FRONTEND=noninteractive trine_as_root apt-get install -y -qq \
           --no-install-recommends $missing; } >"$log" 2>&1; then
    # One package that can't be had must not keep the others away.
    for name in $missing; do
      DEBIAN_FRONTEND=noninteractive trine_as_root apt-get install -y -qq \
        --no-install-recommends "$name" >>"$log" 2>&1 || true
    done
  fi
  trine_fresh=--fresh  # what is installed has changed: look for everything anew
  missing=$(trine_missing "${names[@]}")
  mkdir -p "$trine_root/build"
  printf '%s' "$missing" >"$stamp"
  for name in $missing; do
    for entry in "${entries[@]}"; do
      [ "${entry%%:*}" = "$name" ] || continue
      trine_say "trine: package $name could not be installed:${entry#*:}"
    done
  done
  if [ -n "$missing" ]; then
    trine_say "trine: what the installer said last:"
    tail -n 3 "$log" >&2
  fi
  rm -f "$log"
}

# What must be there, package or not, before a build is tried.
trine_need_tools() {
  local tool failed=0
  for tool in cmake ninja c++; do
    command -v "$tool" >/dev/null || { trine_say "trine: '$tool' is needed and not there"; failed=1; }
  done
  return $failed
}

trine_ensure_packages() {  # "build" or "test"
  local entries=("${trine_required_packages[@]}" "${trine_optional_packages[@]}")
  [ "$1" = test ] && entries+=("${trine_test_packages[@]}")
  trine_install "${entries[@]}"
  trine_need_tools
}

# ccache is a help, not a need: a home that can't be written must not fail the build.
trine_check_ccache() {
  local folder
  command -v ccache >/dev/null || return 0
  folder=$(ccache --get-config cache_dir 2>/dev/null) && mkdir -p "$folder" 2>/dev/null &&
    [ -w "$folder" ] || export CCACHE_DISABLE=1
}

# Returns whether the small program of a first build (tools/first) does what the whole one would:
# the command is one of its two, no option or variable asks for a device, and the folder was
# configured for this machine.
trine_first_is_enough() {  # build folder, arguments of trine
  local dir=$1 argument
  shift
  case ${1:-} in generate | chat) ;; *) return 1 ;; esac
  [ -z "$(compgen -e TRINE_)" ] && [ ! -x "$dir/bin/trine" ] || return 1
  for argument in "$@"; do
    case ${argument%%=*} in
      -ngl | --gpu-layers | --n-gpu-layers | -ts | --tensor-split | -dev | --device | -sm | \
        --split-mode | -ot | --override-tensor | --device-memory | --plugin | --plugin-option | \
        --numerics | --list-devices) return 1 ;;
    esac
  done
  [ -e "$dir/build.ninja" ] || return 0
  local machine; machine=$(bash "$trine_root/tools/first/machine") && [ -n "$machine" ] &&
    [ "$(cat "$dir/first/machine" 2>/dev/null)" = "$machine" ]
}

# Prints "212 of 640 steps, about 3 min left" from ninja's log. The estimate begins with what a build
# is known to take and ends with the speed of this one, because the first steps are the longest.
trine_progress() {  # log, seconds since the build began, seconds that it is expected to take or 0
  local step
  step=$(grep -oE '^\[[0-9]+/[0-9]+\]' "$1" | tail -n 1 | tr -d '[]')
  case $step in "" | 0/*) return 0 ;; esac  # nothing yet, or CMake runs again
  trine_say "$(awk -v step="$step" -v spent="$2" -v expected="$3" 'BEGIN {
    split(step, n, "/"); part = n[1] / n[2]; total = spent / part
    if (expected > 0) total = sqrt(part) * total + (1 - sqrt(part)) * expected
    left = total - spent
    printf "trine: %d of %d steps, %s left", n[1], n[2], \
           left < 45 ? "less than a minute" : sprintf("about %d min", left / 60 + 0.5) }')"
}

# Runs ninja with its output in a log, and prints the progress every 20 seconds.
trine_ninja() {  # log, seconds that the build is expected to take or 0, arguments
  local log=$1 expected=$2 pid waited=0
  shift 2
  ninja "$@" >"$log" 2>&1 9>&- &
  pid=$!
  trap 'kill $pid 2>/dev/null' INT TERM
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.2
    waited=$((waited + 1))
    [ $((waited % 100)) != 0 ] || trine_progress "$log" $((waited / 5)) "$expected"
  done
  trap - INT TERM
  wait "$pid"
}

# Configures (once) and builds a preset. Quiet unless it fails. `seconds` of one core are what the
# build is expected to take; 0 after the first time. Further arguments are targets.
trine_build() {  # preset seconds targets...
  local preset=$1 dir="$trine_root/build/$1" expected log
  expected=$(($2 / $(nproc)))
  shift 2
  mkdir -p "$dir" 2>/dev/null || true
  if [ ! -w "$dir" ]; then
    trine_say "trine: build/$preset can't be written by $(id -un): using it as it is"
    return 0
  fi
  # Two of us at once would build into each other.
  exec 9>"$dir/.trine-lock"
  flock -n 9 || { trine_say "trine: waiting for another build of build/$preset"; flock 9; }
  trine_check_ccache
  log="$dir/trine-build.log"
  if [ ! -f "$dir/build.ninja" ] || [ -n "${trine_fresh:-}" ]; then
    trine_say "trine: configuring build/$preset"
    if ! (cd "$trine_root" && cmake ${trine_fresh:-} --preset "$preset" ${TRINE_CMAKE_ARGS:-}) \
         >"$log" 2>&1; then
      cat "$log" >&2
      return 1
    fi
    grep -E '^-- .*: not found' "$log" >&2 || true
  fi
  # -n tells whether there is anything to do, so that silence means "nothing changed".
  if ! ninja -C "$dir" -n "$@" 2>/dev/null | grep -q 'no work to do'; then
    if [ "$expected" -gt 0 ]; then
      trine_say "trine: building build/$preset for the first time: about $(((expected + 59) / 60)) min" \
                "on $(nproc) cores (log: build/$preset/trine-build.log)"
    else
      trine_say "trine: building build/$preset (log: build/$preset/trine-build.log)"
    fi
  fi
  if ! trine_ninja "$log" "$expected" -C "$dir" "$@"; then
    tail -n 60 "$log" >&2
    trine_say "trine: the build of build/$preset failed"
    return 1
  fi
  exec 9>&-
}
