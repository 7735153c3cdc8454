"""Scripts that complete the words of the command line, made from its parser."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from typing import NamedTuple

INSTALL = {
    "bash": 'eval "$(ckce completion bash)"',
    "zsh": 'eval "$(ckce completion zsh)"',
    "fish": "ckce completion fish | source",
}


class _Option(NamedTuple):
    names: list[str]
    help: str
    choices: list[str]
    takes_value: bool


class _Command(NamedTuple):
    name: str
    help: str
    options: list[_Option]
    choices: list[str]  # of its argument


def _commands(parser: argparse.ArgumentParser) -> list[_Command]:
    (found,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    helps = {action.dest: action.help or "" for action in found._choices_actions}
    return [_command(name, helps[name], each) for name, each in found.choices.items()]


def _command(name: str, text: str, parser: argparse.ArgumentParser) -> _Command:
    options, choices = [], []
    for action in parser._actions:
        known = [] if action.choices is None else list(map(str, action.choices))
        if action.option_strings:
            takes = action.nargs != 0
            options.append(_Option(list(action.option_strings), action.help or "", known, takes))
        else:
            choices += known
    return _Command(name, text, options, choices)


def _bash(commands: list[_Command]) -> str:
    cases, values = [], []
    for command in commands:
        words = [name for option in command.options for name in option.names] + command.choices
        cases.append(f"    {command.name}) words={shlex.quote(' '.join(words))} ;;")
        for option in command.options:
            names = "|".join(f"{command.name}:{name}" for name in option.names)
            if option.choices:
                values.append(f"    {names}) words={shlex.quote(' '.join(option.choices))} ;;")
            elif option.takes_value:
                values.append(f"    {names}) words= ;;")
    lines = [
        "_ckce() {",
        '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words=',
        "  if (( COMP_CWORD == 1 )); then",
        f"    words={shlex.quote(' '.join(c.name for c in commands) + ' --help --version')}",
        '    COMPREPLY=($(compgen -W "$words" -- "$word")); return',
        "  fi",
        '  case "${COMP_WORDS[1]}:$before" in',
        *values,
        '    *) case "${COMP_WORDS[1]}" in',
        *cases,
        "    esac ;;",
        "  esac",
        '  COMPREPLY=($(compgen -W "$words" -- "$word"))',
        '  [[ $word == -* ]] || COMPREPLY+=($(compgen -f -- "$word"))',
        "}",
        "complete -o filenames -F _ckce ckce",
    ]
    return "\n".join(lines)


def _zsh_text(text: str) -> str:
    for mark in "[]:'\\":
        text = text.replace(mark, " " if mark != "'" else "")
    return text


def _zsh(commands: list[_Command]) -> str:
    lines = ["#compdef ckce", "_ckce() {", "  local -a commands", "  commands=("]
    lines += [f"    '{command.name}:{_zsh_text(command.help)}'" for command in commands]
    lines += [
        "  )",
        "  if (( CURRENT == 2 )); then",
        "    _describe command commands",
        "    return",
        "  fi",
        '  local command="$words[2]"',
        "  shift words; (( CURRENT-- ))",
        '  case "$command" in',
    ]
    for command in commands:
        specs = []
        for option in command.options:
            value = f":value:({' '.join(option.choices)})" if option.choices else ":value:_files"
            specs += [
                f"'{name}[{_zsh_text(option.help)}]{value if option.takes_value else ''}'"
                for name in option.names
            ]
        rest = f"({' '.join(command.choices)})" if command.choices else "_files"
        specs.append(f"'*:file:{rest}'")
        lines.append(f"    {command.name}) _arguments {' '.join(specs)} ;;")
    lines += ["  esac", "}"]
    lines += ['if [ "$funcstack[1]" = "_ckce" ]; then _ckce "$@"; else compdef _ckce ckce; fi']
    return "\n".join(lines)


def _fish(commands: list[_Command]) -> str:
    names = " ".join(command.name for command in commands)
    none = f"not __fish_seen_subcommand_from {names}"
    lines = [
        f"complete -c ckce -n {shlex.quote(none)} -f -a {command.name} "
        f"-d {shlex.quote(command.help)}"
        for command in commands
    ]
    for command in commands:
        seen = shlex.quote(f"__fish_seen_subcommand_from {command.name}")
        if command.choices:
            lines.append(
                f"complete -c ckce -n {seen} -f -a {shlex.quote(' '.join(command.choices))}"
            )
        for option in command.options:
            words = ["complete -c ckce -n", seen]
            words += [
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in option.names
            ]
            if option.choices:
                words += ["-x -a", shlex.quote(" ".join(option.choices))]
            elif option.takes_value:
                words.append("-r")
            lines.append(" ".join([*words, "-d", shlex.quote(option.help)]))
    return "\n".join(lines)


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script of a shell."""
    make: dict[str, Callable[[list[_Command]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    head = f"# Completion of ckce for {shell}. To use it: {INSTALL[shell]}"
    body = make[shell](_commands(parser))
    if shell == "zsh":  # its first line says what it completes
        first, _, rest = body.partition("\n")
        return f"{first}\n{head}\n{rest}"
    return f"{head}\n{body}"
