#!/usr/bin/env bash
# Runs tools/setup.sh with the options of its callers and fake dpkg-query and apt-get: with an
# unknown package, with one that can't be installed, and with everything installed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin" "$scratch/installed"

# Reports the packages that it knows, and fails for an unknown one, as the real dpkg-query does.
cat >"$scratch/bin/dpkg-query" <<'SCRIPT'
#!/usr/bin/env bash
status=0
for name in "$@"; do
  case $name in -*) continue ;; esac
  if [ -e "$SCRATCH/installed/$name" ]; then echo "$name installed"; else status=1; fi
done
exit $status
SCRIPT
# Installs everything but "unheard"; if that is among the packages, it installs nothing.
cat >"$scratch/bin/apt-get" <<'SCRIPT'
#!/usr/bin/env bash
echo "$*" >>"$SCRATCH/apt.log"
[ "$1" = install ] || exit 0
case " $* " in *" unheard "*) echo "E: no such package: unheard" >&2; exit 100 ;; esac
shift
for name in "$@"; do case $name in -*) ;; *) touch "$SCRATCH/installed/$name" ;; esac; done
SCRIPT
printf '#!/bin/sh\nshift\nexec "$@"\n' >"$scratch/bin/sudo"  # "sudo -n COMMAND"
chmod +x "$scratch/bin/"*

install() {  # entries...: runs trine_install as tools/test would; says "went on" if it came back
  SCRATCH=$scratch PATH=$scratch/bin:$PATH bash -c '
    set -euo pipefail
    source "$1/tools/setup.sh"; shift
    trine_root=$SCRATCH
    trine_install "$@"
    echo "went on"' _ "$root" "$@" 2>&1
}

failures=0
expect() {  # what, text, output
  case $3 in *"$2"*) ;; *) echo "FAILED: $1: no '$2' in:"; echo "$3"; failures=1 ;; esac
}

out=$(install "one: this" "two: that") || true
expect "packages never heard of" "went on" "$out"
expect "packages never heard of" "installing one two" "$out"
[ -e "$scratch/installed/one" ] && [ -e "$scratch/installed/two" ] ||
  { echo "FAILED: packages never heard of are not installed"; failures=1; }

: >"$scratch/apt.log"
out=$(install "one: this" "two: that") || true
expect "nothing missing" "went on" "$out"
[ ! -s "$scratch/apt.log" ] || { echo "FAILED: something is installed again"; failures=1; }

out=$(install "one: this" "unheard: much is lost" "three: more") || true
expect "one that can't be had" "went on" "$out"
expect "one that can't be had" "package unheard could not be installed: much is lost" "$out"
[ -e "$scratch/installed/three" ] || { echo "FAILED: it keeps another away"; failures=1; }

out=$(install "one: this" "unheard: much is lost" "three: more") || true
expect "soon again" "still missing" "$out"

[ $failures = 0 ] && echo "tools/setup.sh installs what is missing and goes on"
exit $failures
