#!/usr/bin/env bash
# Tests completions in the shell that they are for.
#
#   completion_test.sh TRINE bash|zsh|fish
#
# Exits with 77 (skipped) if the shell is not installed.
set -euo pipefail
trine=$1 shell=$2
command -v "$shell" >/dev/null || { echo "skipped: $shell is not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
script=$work/_trine
"$trine" completion "$shell" >"$script"
"$shell" -n "$script"
mkdir "$work/place" "$work/place/folder"
touch "$work/place/small.gguf" "$work/place/notes.txt" "$work/place/backend.so"
cd "$work/place"

# offered LINE: prints what the shell offers at the end of the line, one per line.
offered_bash() {
  bash --norc -c '
    source "$1"
    line=${2//=/ = }
    read -ra COMP_WORDS <<<"$line"
    [[ $line != *" " || $2 == *= ]] || COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _trine
    printf "%s\n" "${COMPREPLY[@]}"' bash "$script" "$1"
}
offered_fish() {
  HOME=$work fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$script" "$1" | cut -f1
}
# zsh completes only at a terminal. There, a key writes all offers into the line, and a function in
# place of trine prints its arguments when the line is run.
cat >"$work/.zshrc" <<'ZSH'
PS1= fpath=($ZDOTDIR $fpath)
autoload -Uz compinit && compinit -D -u
all_matches() { _main_complete; compstate[insert]=all }
zle -C all_matches complete-word all_matches
bindkey '^T' all_matches
trine() { print -rl -- BEGIN $@ END }
zle-line-init() { print READY }
zle -N zle-line-init
ZSH
cat >"$work/terminal.zsh" <<'ZSH'
zmodload zsh/zpty
zpty terminal 'zsh -i'
zpty -r terminal output '*READY*'
zpty -w -n terminal $1$'\x14\n'
zpty -r terminal output '*BEGIN*END*'
print -r -- $output
ZSH
offered_zsh() {
  local typed
  read -ra typed <<<"${1% *}"
  ZDOTDIR=$work timeout 60 zsh -f "$work/terminal.zsh" "$1" | tr -d '\r' |
    sed -n '/^BEGIN$/,/^END$/p' | tail -n "+$((${#typed[@]} + 1))"
}

failed=0
offers() {  # LINE WORD...: each is offered
  local line=$1 word found
  shift
  found=$("offered_$shell" "$line")
  for word in "$@"; do
    grep -qxF -- "$word" <<<"$found" ||
      { echo "'$line' does not offer $word:" $found; failed=1; }
  done
}
withholds() {  # LINE WORD...: none is
  local line=$1 word found
  shift
  found=$("offered_$shell" "$line")
  for word in "$@"; do
    ! grep -qxF -- "$word" <<<"$found" || { echo "'$line' offers $word:" $found; failed=1; }
  done
}

offers 'trine ' generate detect plugin completion
offers 'trine gen' generate
withholds 'trine gen' detect
offers 'trine plugin ' check
offers 'trine generate --cache-type' --cache-type-k --cache-type-v
withholds 'trine detect -' --cache-type-k --temp
offers 'trine detect --j' --json
offers 'trine generate --cache-type-k ' f16 f32 bf16 q8_0
offers 'trine generate -p x --flash-attn a' auto
withholds 'trine generate --cache-type-k ' --temp generate small.gguf
offers 'trine generate -m ' small.gguf
offers 'trine generate -f ' notes.txt small.gguf
offers 'trine plugin check b' backend.so
offers 'trine completion ' bash zsh fish
# A value is not a command, though it may look like one.
offers 'trine generate -p plugin --tem' --temp
if [ "$shell" = fish ]; then  # offers every file, but those that fit first
  [ "$(offered_fish 'trine generate -m ' | head -n 1)" = small.gguf ] ||
    { echo "'trine generate -m ' does not offer small.gguf first"; failed=1; }
else
  withholds 'trine generate -m ' notes.txt backend.so
  withholds 'trine plugin check ' notes.txt
fi
if [ "$shell" = bash ]; then
  offers 'trine generate -ctk ' f16 q8_0
  offers 'trine generate --cache-type-k=b' bf16
  offers 'trine generate --cache-type-k=' f16 bf16
  offers 'trine generate -m f' folder
  offers 'trine detect --root ' folder
  withholds 'trine detect --root ' notes.txt
  # Check every command that --help shows.
  for command in $("$trine" --help | sed -n '/^Subcommands:/,$s/^  \([a-z-]*\) .*/\1/p'); do
    options=$("$trine" "$command" --help | sed -n 's/^  \(-[^ ]*\).*/\1/p' | tr , '\n')
    offers "trine $command -" $options
  done
fi
exit $failed
