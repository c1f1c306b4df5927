#!/usr/bin/env bash
# Checks that the top level holds exactly what docs/design.md says, and that its pages exist.
set -euo pipefail
cd "$1"
expected=".ci .clang-format .clang-tidy .gitignore CHANGELOG.md CMakeLists.txt CMakePresets.json
CONTRIBUTING.md LICENSE README.md SECURITY.md backends detect dispatch docs kernels plugins runtime tests tools"
# Leave out what git ignores (builds, editors' folders); without git, known folders of that kind.
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  found=$(git ls-files --cached --others --exclude-standard | cut -d/ -f1 | sort -u)
else
  found=$(ls -A | grep -vxE '\.git|build' | sort -u)
fi
diff <(printf '%s\n' $expected | sort) <(printf '%s\n' "$found" | sort) ||
  { echo "the top level differs (< expected, > found)"; exit 1; }
failed=0
while IFS=: read -r page link; do
  target=$(dirname "$page")/${link%%#*}
  [ -e "$target" ] || { echo "$page: the link to $link leads nowhere"; failed=1; }
done < <(grep -oHE '\]\([^)# ][^) ]*\)' README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs/*.md |
         sed -E 's/\]\(//; s/\)$//' | grep -vE ':[a-z]+://')
exit $failed
