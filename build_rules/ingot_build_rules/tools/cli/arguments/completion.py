"""What ``ingot completion`` takes, and examples of it. In: nothing. Out: data. Not done here: the
verb (``cli.completion``)."""

from ingot_build_rules.tools.cli.shell.options import Argument, Example, Option

ARGUMENTS = (Argument("shell", "SHELL", "bash, zsh or fish", choices=("bash", "zsh", "fish")),)
OPTIONS: tuple[Option, ...] = ()
EXAMPLES = (
    Example(
        "ingot completion bash > ~/.local/share/bash-completion/completions/ingot",
        "for bash with the package bash-completion; without it, append the script to ~/.bashrc",
    ),
    Example(
        "ingot completion zsh > ~/.zfunc/_ingot",
        "for zsh, if ~/.zshrc has: fpath+=~/.zfunc; autoload -Uz compinit; compinit",
    ),
    Example("ingot completion fish > ~/.config/fish/completions/ingot.fish", "for fish"),
)
