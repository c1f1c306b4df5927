#!/usr/bin/env bash
# Makes the Debian packages, installs them into a clean root, uses them there as on a machine that
# has never seen the project, and removes them.
#
#   deb_test.sh BUILD_DIR WORK_DIR CXX
#
# The root holds only the libraries that the packages' Depends name: the files and the dpkg status
# of those packages, taken from this machine. The package of the HIP backend, if there is one, is
# installed without its dependencies: the plugin must then be reported, and nothing else may suffer.
# With TRINE_LONG=1 apt also installs the packages into a whole Debian system, made by mmdebstrap
# and kept as BUILD_DIR/deb_test_base.tar.
#
# Needs root, or user namespaces. Exits with 77 (skipped) if something is missing.
set -euo pipefail
build=$1 work=$2 cxx=$3
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*"; exit 1; }

export PATH=$PATH:/usr/sbin:/sbin
for tool in cpack dpkg-deb dpkg-shlibdeps file unshare chroot; do
  command -v "$tool" >/dev/null || skip "$tool is not installed"
done
# Use a mount namespace, so that no mount outlives the test, and the folder is never removed while
# something is mounted in it.
if [ -z "${TRINE_DEB_TEST_INSIDE:-}" ]; then
  rm -rf "$work"
  mkdir -p "$work"
  namespace=(unshare --mount)
  [ "$(id -u)" = 0 ] || namespace+=(--map-root-user)
  if "${namespace[@]}" true 2>/dev/null; then
    TRINE_DEB_TEST_INSIDE=mounts "${namespace[@]}" "$0" "$@"
  elif [ "$(id -u)" = 0 ]; then
    TRINE_DEB_TEST_INSIDE=bare "$0" "$@"
  else
    skip "this user is not root and may not make a namespace"
  fi
  rm -rf "$work"
  exit 0
fi
unset LD_LIBRARY_PATH TRINE_PLUGIN_PATH TRINE_PROBE
version=$(sed -n 's/^set(CPACK_PACKAGE_VERSION "\(.*\)")/\1/p' "$build/CPackConfig.cmake")

make_packages() {
  # gzip makes the test faster; users get the tighter compression.
  cpack --config "$build/CPackConfig.cmake" -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip \
    -B "$work/packages" >"$work/cpack.log" 2>&1 || { cat "$work/cpack.log"; fail "cpack"; }
  rm -rf "$work/packages/_CPack_Packages"
  ls "$work/packages"
}

package_of() {  # the one that is given its name
  local file=("$work/packages/$1"_"$version"_*.deb)
  [ -f "${file[0]}" ] || fail "there is no package $1"
  echo "${file[0]}"
}

# Checks a package's files: one pattern for each kind of file.
check_contents() {
  local package pattern
  while read -r package pattern; do
    dpkg-deb -c "$(package_of "$package")" >"$work/contents"
    grep -qE " \./usr/$pattern" "$work/contents" || fail "$package lacks $pattern"
  done <<'LIST'
trine bin/trine$
trine share/man/man1/trine.1.gz$
trine share/man/man1/trine-plugin-check.1.gz$
trine share/bash-completion/completions/trine$
trine share/zsh/vendor-completions/_trine$
trine share/fish/vendor_completions.d/trine.fish$
trine share/doc/trine/copyright$
trine share/doc/trine/changelog.gz$
trine share/doc/trine/packaging.md$
trine-backends libexec/trine/trine-probe$
trine-backends lib/(.*-linux-gnu.*/)?trine/plugins/libtrine-backend-cpu.so$
libtrine0.1 lib/(.*-linux-gnu.*/)?libtrine.so.0.1 ->
libtrine-dev include/trine/trine.h$
libtrine-dev lib/(.*-linux-gnu.*/)?libtrine.so ->
libtrine-dev lib/(.*-linux-gnu.*/)?pkgconfig/trine.pc$
trine-model-tales share/trine/models/.*\.gguf$
LIST
  local needed
  while read -r package needed; do
    dpkg-deb -f "$(package_of "$package")" Depends | grep -qF "$needed" ||
      fail "$package does not depend on $needed"
  done <<LIST
trine trine-backends (= $version)
trine libabsl
trine-backends libc6
libtrine0.1 trine-backends (= $version)
libtrine0.1 libabsl
libtrine-dev libtrine0.1 (= $version)
LIST
}

# The plugin for discrete GPUs is in a package of its own, so that no other needs a GPU's runtime.
# If it was not compiled there is no such package. No package has the emulator.
hip_file=$build/bin/libtrine-backend-hip.so
hip_package() { compgen -G "$work/packages/trine-backend-hip_*.deb" || true; }
others() { find "$work/packages" -name '*.deb' ! -name 'trine-backend-hip_*'; }
check_hip() {
  local package
  for package in "$work"/packages/*.deb; do
    dpkg-deb -c "$package" >"$work/contents"
    ! grep -q 'hip-host' "$work/contents" || fail "$package holds the emulator"
    [ "$package" != "$(hip_package)" ] || continue
    ! grep -q 'backend-hip\.so' "$work/contents" || fail "$package holds the HIP backend"
    dpkg-deb -f "$package" Depends >"$work/depends"
    ! grep -qiE 'amdhip|rocm' "$work/depends" || fail "$package needs HIP's runtime"
  done
  # An older build may have left the file.
  if ! grep -q 'TRINE_HIP_PLATFORM.*=\(amd\|nvidia\)$' "$build/CMakeCache.txt" &&
     ! grep -q '^set(CPACK_COMPONENTS_ALL.*backend-hip' "$build/CPackConfig.cmake"; then
    [ -z "$(hip_package)" ] || fail "there is a package of a HIP backend that was not built"
    return
  fi
  package=$(package_of trine-backend-hip)
  dpkg-deb -c "$package" >"$work/contents"
  grep -qE '/trine/plugins/libtrine-backend-hip\.so$' "$work/contents" ||
    fail "trine-backend-hip lacks its plugin"
  dpkg-deb -f "$package" Depends | grep -qF "trine-backends (= $version)" ||
    fail "trine-backend-hip does not depend on trine-backends"
  # Stripping must keep the GPU code, for every target that the description names.
  local target targets=()
  for target in $(dpkg-deb -f "$package" Description | grep -oE '^ (gfx|sm_)[0-9a-z]+$'); do
    targets+=("--target=$target")
  done
  [ ${#targets[@]} -gt 0 ] || fail "trine-backend-hip does not say for which GPUs it is"
  if [[ ${targets[0]} == --target=gfx* ]] && command -v python3 >/dev/null; then
    dpkg-deb -x "$package" "$work/hip"
    "$sources/tools/check_code_objects" --sgpr-spills --may-spill=TopKKernel "${targets[@]}" \
      "$(find "$work/hip" -name libtrine-backend-hip.so)" >"$work/targets" ||
      { cat "$work/targets"; fail "trine-backend-hip does not hold what it says"; }
    rm -r "$work/hip"
  fi
  readelf -d "$hip_file" >"$work/needed"
  if grep -q 'NEEDED.*libamdhip64' "$work/needed"; then
    dpkg-deb -f "$package" Depends Recommends | grep -qE 'libamdhip64|hip-runtime-amd' ||
      fail "trine-backend-hip does not name HIP's runtime"
  fi
}

lint() {
  command -v lintian >/dev/null || { echo "lintian: not installed, the packages are not linted"; return; }
  # cpack writes the calls of ldconfig. A tree configured for another prefix than /usr has its files
  # in /usr/lib/pkgconfig (TrinePackage.cmake).
  lintian --fail-on error,warning \
    --suppress-tags maintscript-calls-ldconfig,pkg-config-unavailable-for-cross-compilation \
    "$work"/packages/*.deb >"$work/lintian.log" 2>&1 ||
    { grep -v '^N:' "$work/lintian.log"; fail "lintian"; }
}

# Lists the given packages and all that they need; of alternatives, the first that is installed.
closure() {
  local seen=" " queue=("$@") name group choice
  while [ ${#queue[@]} -gt 0 ]; do
    name=${queue[0]} queue=("${queue[@]:1}")
    [[ $seen != *" $name "* ]] || continue
    seen+="$name "
    while IFS= read -r group; do
      for choice in $(sed 's/([^)]*)//g; s/:any//g; s/|/ /g' <<<"$group"); do
        if dpkg-query -W -f='${db:Status-Status}' "$choice" 2>/dev/null | grep -qx installed; then
          queue+=("$choice")
          break
        fi
      done
    done < <(dpkg-query -W -f='${Pre-Depends},${Depends}\n' "$name" | tr , '\n')
  done
  printf '%s\n' $seen
}

# The packages that are part of every Debian 12 and that ours use.
essential=(dash libc-bin)

make_bare_root() {  # folder
  local root=$1 needed names name folder
  needed=$(for file in $(others); do dpkg-deb -f "$file" Depends; echo; done |
    tr , '\n' | sed 's/([^)]*)//g; s/|.*//; s/ //g' | grep -vE 'trine|^$' | sort -u)
  names=$(closure "${essential[@]}" $needed)
  for folder in bin sbin lib lib64; do
    mkdir -p "$root/usr/$folder"
    ln -s "usr/$folder" "$root/$folder"
  done
  mkdir -p "$root"/{tmp,etc} "$root"/var/lib/dpkg/{info,updates,triggers}
  for name in $names; do
    dpkg-query -s "$name"
    echo
  done >"$root/var/lib/dpkg/status"
  for name in $names; do dpkg-query -L "$name"; done |
    grep -vE '^/usr/share/(doc|man|locale|lintian)/' | sort -u |
    while IFS= read -r file; do
      if [ -L "$file" ] || [ -f "$file" ]; then printf '%s\n' "${file#/}"; fi
    done >"$work/files"
  tar -C / -c --no-recursion -T "$work/files" | tar -C "$root" -x
  echo "a root of $(wc -w <<<"$names") packages:" $names
}

# Provides the kernel's files. The programs find their own files by /proc/self/exe. Where nothing
# may be mounted, a link takes its place for the one program that is run.
give_kernel_files() {  # root
  local device
  mkdir -p "$1/proc" "$1/dev"
  for device in null zero urandom; do
    touch "$1/dev/$device"
    [ "$TRINE_DEB_TEST_INSIDE" = bare ] || mount --bind "/dev/$device" "$1/dev/$device"
  done
  if [ "$TRINE_DEB_TEST_INSIDE" = bare ]; then
    echo "nothing may be mounted here: /proc/self/exe and /dev/null are stand-ins"
    mkdir -p "$1/proc/self"
    ln -sfn /usr/bin/trine "$1/proc/self/exe"
  else
    mount --rbind /proc "$1/proc"
  fi
}

inside() {  # root, command...
  local root=$1
  shift
  env -i PATH=/usr/sbin:/usr/bin HOME=/ chroot "$root" "$@"
}

use_packages() {  # root
  local root=$1 text
  text=$(inside "$root" trine generate -p "Once upon a time" -n 8 --temp 0 2>"$work/errors") ||
    { cat "$work/errors"; fail "trine generate"; }
  [[ $text == "Once upon a time"* && ${#text} -gt 24 ]] || fail "trine generate wrote '$text'"
  [ "$text" = "$("$build/bin/trine" generate -p "Once upon a time" -n 8 --temp 0 2>/dev/null)" ] ||
    fail "the installed program writes another story: $text"
  inside "$root" trine detect >"$work/detect" || { cat "$work/detect"; fail "trine detect"; }
  grep -E 'cpu.*/usr/lib.*/trine/plugins/libtrine-backend-cpu\.so' "$work/detect" |
    grep -q installed || { cat "$work/detect"; fail "the installed backend is not used"; }
  mkdir -p "$root/tmp"
  cp "$work/example/libtrine-backend-example.so" "$root/tmp"
  inside "$root" trine plugin check /tmp/libtrine-backend-example.so >"$work/check" 2>&1 ||
    { cat "$work/check"; fail "trine plugin check"; }
  echo "used in $root: $text"
}

# Builds with this machine's compiler, but the package's headers, CMake files and sources.
build_example() {  # root
  cp -r "$1/usr/share/doc/trine/example" "$work/example-source"
  cmake -S "$work/example-source" -B "$work/example" -DCMAKE_CXX_COMPILER="$cxx" \
    -DCMAKE_PREFIX_PATH="$1/usr" -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF >"$work/example.log" 2>&1 &&
    cmake --build "$work/example" >>"$work/example.log" 2>&1 ||
    { cat "$work/example.log"; fail "the example backend against the package"; }
  grep -q "trine_DIR:PATH=$1/usr/" "$work/example/CMakeCache.txt" ||
    fail "the example was built against another trine"
}

# Without a runtime or a GPU, the plugin is listed with a reason, and models run as before.
use_hip_without_gpu() {  # root
  dpkg --root="$1" --log=/dev/null --force-depends -i "$(hip_package)" >"$work/dpkg.log" 2>&1 ||
    { cat "$work/dpkg.log"; fail "dpkg -i of the HIP backend"; }
  inside "$1" trine detect >"$work/detect" || { cat "$work/detect"; fail "trine detect"; }
  grep 'libtrine-backend-hip\.so' "$work/detect" |
    grep -qE 'libamdhip64\.so\S* |no device' ||
    { cat "$work/detect"; fail "the HIP backend has no reason"; }
  use_packages "$1"
}

expect_gone() {  # root
  local left
  left=$(find "$1/usr" -iname '*trine*' 2>/dev/null)
  [ -z "$left" ] || fail "left behind when removed: $left"
}

in_bare_root() {
  local root=$work/root names
  make_bare_root "$root"
  give_kernel_files "$root"
  dpkg --root="$root" --log=/dev/null -i $(others) >"$work/dpkg.log" 2>&1 ||
    { cat "$work/dpkg.log"; fail "dpkg -i"; }
  build_example "$root"
  use_packages "$root"
  [ -z "$(hip_package)" ] || use_hip_without_gpu "$root"
  names=$(for file in "$work"/packages/*.deb; do dpkg-deb -f "$file" Package; done)
  dpkg --root="$root" --log=/dev/null -P $names >"$work/dpkg.log" 2>&1 ||
    { cat "$work/dpkg.log"; fail "dpkg -P"; }
  expect_gone "$root"
}

in_whole_system() {
  local root=$work/system base=$build/deb_test_base.tar suite
  [ "$TRINE_DEB_TEST_INSIDE" = mounts ] ||
    { echo "no whole system: nothing may be mounted here"; return; }
  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  if [ ! -s "$base" ]; then
    command -v mmdebstrap >/dev/null || { echo "no whole system: mmdebstrap is not installed"; return; }
    mmdebstrap --variant=minbase "$suite" "$base.new.tar" >"$work/mmdebstrap.log" 2>&1 ||
      { tail -n 5 "$work/mmdebstrap.log"; echo "no whole system: mmdebstrap failed"; return; }
    mv "$base.new.tar" "$base"
  fi
  mkdir -p "$root"
  tar -C "$root" -xf "$base" --exclude='./dev/*'
  give_kernel_files "$root"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  cp "$work"/packages/*.deb "$root/tmp"
  inside "$root" sh -ec 'export DEBIAN_FRONTEND=noninteractive; apt-get update -q
    apt-get install -y -q --no-install-recommends /tmp/*.deb' >"$work/apt.log" 2>&1 ||
    { tail -n 20 "$work/apt.log"; fail "apt-get install"; }
  use_packages "$root"
  inside "$root" sh -ec 'apt-get purge -y -q "*trine*"' >"$work/apt.log" 2>&1 ||
    { tail -n 20 "$work/apt.log"; fail "apt-get purge"; }
  expect_gone "$root"
}

make_packages
check_contents
check_hip
lint
in_bare_root
[ -z "${TRINE_LONG:-}" ] || in_whole_system
echo "installed, used and removed"
