"""Verb ``completion``: what a shell runs to complete the arguments of ``ingot``.

In: the name of a shell. Out: a script for it. Not done here: the candidates, for which the script
calls the command again (``candidates``).
"""

from __future__ import annotations

import argparse

_BASH = r"""
_ingot() {
  local current=${COMP_WORDS[COMP_CWORD]} answer
  # bash takes "--target=x" apart; what stands behind "=" or ":" is the word that it replaces.
  [[ $current == [=:] ]] && current=
  mapfile -t answer < <("$1" completion bash --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  COMPREPLY=()
  case ${answer[0]} in
    words) COMPREPLY=("${answer[@]:1}") ;;
    files*)
      compopt -o filenames
      mapfile -t COMPREPLY < <(
        compgen -f -X "!*${answer[0]#files }" -- "$current"; compgen -d -- "$current") ;;
    folders)
      compopt -o filenames
      mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
  esac
}
complete -F _ingot ingot
"""
_ZSH = r"""
#compdef ingot
_ingot() {
  local -a answer candidates
  answer=("${(@f)$("$words[1]" completion zsh --words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  [[ $answer[1] == words ]] || compset -P '--*='
  case $answer[1] in
    words)
      candidates=("${(@)answer[2,-1]}")
      _describe ingot candidates ;;
    files*) _files -g "*${answer[1]#files }" ;;
    folders) _files -/ ;;
  esac
}
if [[ $funcstack[1] == _ingot ]]; then _ingot "$@"; else compdef _ingot ingot; fi
"""
_FISH = r"""
function __ingot_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    set -l answer ($before[1] completion fish --words $before[2..] "$current" 2>/dev/null)
    switch "$answer[1]"
        case words
            printf '%s\n' $answer[2..]
        case 'files*'
            __fish_complete_suffix "$current" (string replace -r '^files ?' '' -- $answer[1])
        case folders
            __fish_complete_directories "$current" ''
    end
end
# -k keeps the order: files with the right suffix come first, then what else there is.
complete -c ingot -k -f -a '(__ingot_complete)'
"""
_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    print(script(arguments.shell), end="")
    return 0


def script(shell: str) -> str:
    """Return what ``shell`` runs to complete arguments of ``ingot``."""
    return _SCRIPTS[shell].strip() + "\n"
