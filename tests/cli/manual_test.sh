#!/usr/bin/env bash
# Checks that every command has a manual page, that it names every option of --help, that the first
# page names every variable the program reads, and that the formatter has no warnings.
#
#   manual_test.sh TRINE SOURCE_DIR
set -euo pipefail
trine=$1 source_dir=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
complain() { echo "$*"; failed=1; }

commands_of() {  # the words that lead to a command; none: trine
  "$trine" "$@" --help | sed -n '/^Subcommands:/,$s/^  \([a-z][a-z0-9-]*\) .*/\1/p'
}
options_of() {  # as -m,--model
  "$trine" "$@" --help | sed -n 's/^  \(-[^ ]*\).*/\1/p'
}

"$trine" man --write "$work/pages"
pages=0
try() {
  local page=trine word names name
  for word in "$@"; do page+=-$word; done
  pages=$((pages + 1))
  if [ ! -s "$work/pages/$page.1" ]; then complain "there is no page $page"; return; fi
  cmp -s "$work/pages/$page.1" <("$trine" man "$@") ||
    complain "trine man $* prints another page than it writes"
  # Not a pipe: the second grep may end before the first one has written all of a long page.
  grep -A1 -Fx '.TP' "$work/pages/$page.1" >"$work/terms" || true
  for names in $(options_of "$@"); do
    for name in ${names//,/ }; do
      grep -qF -- "\\fB${name//-/\\-}\\fR" "$work/terms" || complain "$page(1) lacks $name"
    done
  done
  for word in $(commands_of "$@"); do
    grep -qF "$(sed 's/-/\\-/g' <<<"\\fB$page-$word\\fR(1)")" "$work/pages/$page.1" ||
      complain "$page(1) does not point to $page-$word(1)"
    try "$@" "$word"
  done
}
try
[ "$pages" -ge 8 ] || complain "only $pages commands were found in --help"
[ "$(ls "$work/pages" | wc -l)" = "$pages" ] || complain "pages without a command:" "$work"/pages/*

"$trine" man no such command >"$work/out" 2>"$work/errors" && complain "an unknown command has a page"
grep -q "no command 'no such command'" "$work/errors" || complain "$(cat "$work/errors")"
cmp -s "$work/pages/trine.1" <("$trine" man trine) || complain "trine man trine is not trine(1)"
cmp -s "$work/pages/trine-plugin-check.1" <("$trine" man trine plugin check) ||
  complain "trine man trine plugin check is not trine-plugin-check(1)"
"$trine" man --write /dev/null/x 2>/dev/null && complain "a folder that can't be made is no error"

# Leave out variables of tests, which don't concern users.
for variable in $(cd "$source_dir" && grep -rhoE --include='*.cc' --exclude='*_test.cc' \
    '"TRINE_[A-Z_]+"' detect plugins backends dispatch runtime kernels tools | tr -d '"' | sort -u); do
  case $variable in TRINE_LONG | TRINE_SHARED_DIR) continue ;; esac
  grep -qF "\\fB$variable\\fR" "$work/pages/trine.1" || complain "trine(1) lacks $variable"
done

if command -v groff >/dev/null; then
  for page in "$work"/pages/*.1; do
    groff -man -Tutf8 -ww -rLL=78n "$page" >"$work/text" 2>"$work/warnings" || true
    [ ! -s "$work/warnings" ] || complain "$page: $(cat "$work/warnings")"
    [ -s "$work/text" ] || complain "$page: nothing comes out"
  done
else
  echo "groff: not installed, the pages are not formatted"
fi
[ "$failed" != 0 ] || echo "$pages pages"
exit $failed
