"""Shell completion: the scripts of the shells, and what they ask for.

A script runs `keywright` with the words before the cursor as its arguments and the name of the shell in
_KEYWRIGHT_COMPLETE, and gets a candidate on each line: the value, a tab, and a description; for bash, which
passes its own variables, only the value. A line without a value asks for names of files. Nothing is parsed,
no callback runs, no server is reached.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Annotated, Any, NamedTuple

import typer

from keywright.cli.candidates import FILES, Candidate, command_candidates, value_candidates
from keywright.cli.output import echo_exact
from keywright.cli.params import is_option, takes_value
from keywright.tools.terminal import printable

__all__ = ["VARIABLE", "completed", "completion"]

VARIABLE = "_KEYWRIGHT_COMPLETE"

_BASH = r"""
_keywright_completion() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ -z $line ]]; then
            compopt -o default 2>/dev/null
        else
            COMPREPLY+=("$line")
        fi
    done < <(_KEYWRIGHT_COMPLETE=bash COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" \
        COMP_WORDBREAKS="$COMP_WORDBREAKS" "$1" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=:] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -F _keywright_completion keywright
"""

_ZSH = r"""
#compdef keywright
_keywright() {
    local line value
    local -a described
    for line in "${(@f)$(_KEYWRIGHT_COMPLETE=zsh ${words[1]} "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
        value=${line%%$'\t'*}
        if [[ $value == *[=:] ]]; then
            compadd -S '' -- "$value"
        elif [[ -n $value ]]; then
            described+=("${value//:/\\:}:${line#*$'\t'}")
        elif [[ $line == $'\t'* ]]; then
            _files
        fi
    done
    (( ${#described} )) && _describe -V keywright described
}
if [[ $funcstack[1] == _keywright ]]; then
    _keywright "$@"
else
    compdef _keywright keywright
fi
"""

_FISH = r"""
function __keywright_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in (_KEYWRIGHT_COMPLETE=fish $words[1] $words[2..-1] $current 2>/dev/null)
        if string match -qr '^\t' -- $line
            __fish_complete_path $current
        else
            echo $line
        end
    end
end
complete -c keywright -f -a '(__keywright_complete)'
"""


# Bash inserts a word as it is.
_ESCAPED = re.compile(r"""[][<>|&;()$`"'\\*?#~!{} ]""")


class Shell(Enum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_SCRIPTS = {Shell.BASH: _BASH, Shell.ZSH: _ZSH, Shell.FISH: _FISH}


def completion(
    shell: Annotated[
        Shell, typer.Argument(metavar="SHELL", help="The shell that reads the script.", show_default=False)
    ],
) -> None:
    """Print the script that completes commands, options, models, templates and codes of findings.

    For bash add to ~/.bashrc: eval "$(keywright completion bash)". For zsh save it as _keywright in a folder
    of $fpath, or use eval below compinit in ~/.zshrc. For fish save it as keywright.fish in
    ~/.config/fish/completions.

    Examples:
        eval "$(keywright completion bash)"
        keywright completion zsh > ~/.zfunc/_keywright
        keywright completion fish > ~/.config/fish/completions/keywright.fish
    """
    echo_exact(_SCRIPTS[shell].strip())


def completed(program: Any, args: Sequence[str] | None) -> bool:
    """Print the candidates if a completion script asks for them. Return whether it did."""
    shell = os.environ.get(VARIABLE)
    if not shell:
        return False
    if shell == Shell.BASH.value:
        words, kept = _bash_words()
        for value, _ in _candidates(program, words):
            echo_exact(_ESCAPED.sub(r"\\\g<0>", printable(value)[kept:]) if value else "")
    else:
        words = list(sys.argv[1:] if args is None else args)
        for value, description in _candidates(program, words):
            echo_exact(f"{printable(value)}\t{printable(description)}")
    return True


def _bash_words() -> tuple[list[str], int]:
    """Return the words before the cursor, and how much of the last one bash keeps as it is.

    Bash splits words at COMP_WORDBREAKS, such as the colon in MODULE:ATTRIBUTE, and replaces the last piece.
    """
    line = os.environ.get("COMP_LINE", "").encode()
    line = line[: int(os.environ.get("COMP_POINT") or len(line))]
    words = _split(line.decode("utf-8", "replace"))[1:]
    last = words[-1] if words else ""
    breaks = "".join(set(os.environ.get("COMP_WORDBREAKS", "")) & set(":="))
    return words, max((last.rfind(each) + 1 for each in breaks), default=0)


def _split(line: str) -> list[str]:
    """Split a line as a shell does, whose last word may be empty or within a quotation."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        words.extend(lexer)
    except ValueError:  # an open quotation
        return [*words, lexer.token]
    return [*words, ""] if not line or line[-1].isspace() else words


class _Place(NamedTuple):
    """Where the cursor is: in a command, perhaps at the value of an option, after some arguments."""

    command: Any
    ctx: Any
    option: Any
    arguments: list[str]
    dashes: bool


def _candidates(program: Any, words: list[str]) -> Iterable[Candidate]:
    *before, last = words or [""]
    place = _place(program, before)
    if place is None:
        return []
    params = place.command.get_params(place.ctx)
    if place.option is not None:
        return value_candidates(place.option, last.removeprefix("="), place.arguments)
    if last.startswith("-") and not place.dashes:
        name, equals, value = last.partition("=")
        if equals:
            param = _option(params, name)
            found = value_candidates(param, value, place.arguments) if param is not None else []
            return [each if each is FILES else Candidate(f"{name}={each.value}", each.help) for each in found]
        return _option_candidates(params, last)
    if hasattr(place.command, "sections"):
        return command_candidates(place.command, place.ctx, last)
    expected = [param for param in params if not is_option(param)]
    number = len(place.arguments)
    if expected and number >= len(expected) and expected[-1].nargs == -1:
        number = len(expected) - 1
    return value_candidates(expected[number], last, place.arguments) if number < len(expected) else []


def _place(program: Any, words: Iterable[str]) -> _Place | None:
    """Follow the words; None if one of them is not a command."""
    ctx = typer.Context(program, info_name="keywright", resilient_parsing=True)
    place = _Place(program, ctx, None, [], False)
    for word in words:
        command, params = place.command, place.command.get_params(place.ctx)
        if place.option is not None:
            if word != "=":
                place = place._replace(option=None)
        elif word == "--" and not place.dashes:
            place = place._replace(dashes=True)
        elif word.startswith("-") and not place.dashes:
            param = _option(params, word)
            wants = param is not None and takes_value(param) and "=" not in word
            place = place._replace(option=param if wants else None)
        elif hasattr(command, "sections"):
            below = command.get_command(place.ctx, word)
            if below is None:
                return None
            inner = typer.Context(below, info_name=word, parent=place.ctx, resilient_parsing=True)
            place = _Place(below, inner, None, [], False)
        else:
            place.arguments.append(word)
    return place


def _option(params: Iterable[Any], word: str) -> Any:
    name = word.partition("=")[0]
    return next((param for param in params if name in (*param.opts, *param.secondary_opts)), None)


def _option_candidates(params: Iterable[Any], last: str) -> list[Candidate]:
    return [
        Candidate(name, " ".join((param.help or "").split()))
        for param in params
        if is_option(param) and not param.hidden
        for name in (*param.opts, *param.secondary_opts)
        if name.startswith(last) and (name.startswith("--") or last == name)
    ]
