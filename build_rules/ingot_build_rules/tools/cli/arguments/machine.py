"""What the verbs about this machine and this shell take, and examples of them.

In: nothing. Out: ``TAKES``. Not done here: the verbs (``cli``).
"""

from ingot_build_rules.tools.cli.shell.options import (
    CACHE,
    CALL_SHAPE,
    JSON,
    Argument,
    Example,
    Option,
    Takes,
)

TAKES = {
    "tune": Takes(
        (
            Argument(
                "model",
                "MODEL|PROJECT",
                "an .onnx file, or the folder or file of a project",
                "model",
            ),
        ),
        (
            Option("-o --output", "the file to write (default: MODEL.tune)", "FILE", "file"),
            Option("--target", "what to measure for (default: native)", "T", "target"),
            Option(
                "--precision",
                "as for compile (default: f32): only methods that are precise enough are measured",
                choices=("f32", "fast"),
            ),
            Option("--inputs", "inputs (default: numbers from a fixed seed)", "F.npz", "arrays"),
            CALL_SHAPE,
            Option("--threads", "threads that compute (default 1)", "N", "count", 1),
            Option("--rounds", "calls of each method, in turns (default 30)", "N", "count", 30),
            *CACHE,
            JSON,
        ),
        (
            Example("ingot tune model.onnx", "measure each layer's methods into model.tune"),
            Example("ingot tune .", "measure each bundle of the project that names a tuning file"),
            Example(
                "ingot tune model.onnx --target x86-64-v3 --rounds 100", "for a level, more calls"
            ),
        ),
    ),
    "identify": Takes(
        (),
        (
            Option("--measure", "measure what a core does in a cycle, for some seconds"),
            JSON,
        ),
        (
            Example("ingot identify", "level, features, and what native stands for"),
            Example("ingot identify --measure", "also its rates, beside those of its class"),
        ),
    ),
    "man": Takes(
        (Argument("verb", "VERB", "the page of this verb (default: ingot)", "verb", "?"),),
        (Option("-o --output", "write all pages into this folder, as NAME.1", "DIR", "folder"),),
        (
            Example("ingot man compile | man -l -", "read the page of one verb"),
            Example(
                "ingot man -o ~/.local/share/man/man1",
                "install all, so that `man ingot` finds them",
            ),
        ),
    ),
    "completion": Takes(
        (Argument("shell", "SHELL", "bash, zsh or fish", choices=("bash", "zsh", "fish")),),
        (),
        (
            Example(
                "ingot completion bash > ~/.local/share/bash-completion/completions/ingot",
                "for bash with the package bash-completion; without it, append the script to ~/.bashrc",
            ),
            Example(
                "ingot completion zsh > ~/.zfunc/_ingot",
                "for zsh, if ~/.zshrc has: fpath+=~/.zfunc; autoload -Uz compinit; compinit",
            ),
            Example("ingot completion fish > ~/.config/fish/completions/ingot.fish", "for fish"),
        ),
    ),
}
