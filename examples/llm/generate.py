"""Continue a prompt with a compiled decoder, token by token as they come.

In: a bundle, numbers of tokens (--ids) or a text (--tokenizer FILE TEXT). Out: numbers, or text.
Not done here: how a token is chosen (``decoding``).
"""

import argparse
import sys

from decoding import generated

import ingot_runtime


def main() -> None:
    """Read the arguments, stream the answer."""
    parser = argparse.ArgumentParser(description="continue a prompt, token by token")
    parser.add_argument("bundle")
    parser.add_argument("text", nargs="?", default="", help="the prompt, with --tokenizer")
    parser.add_argument("--ids", type=numbers, help="the prompt as numbers: 1,2,3")
    parser.add_argument("--tokenizer", help="the model's tokenizer.json (pip install tokenizers)")
    parser.add_argument("--count", type=int, default=32, help="most tokens to make")
    parser.add_argument("--temperature", type=float, default=0.0, help="0: the most probable token")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--size",
        type=size,
        action="append",
        default=[],
        help="one that the model leaves open: NAME=N",
    )
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if options.ids is None and options.tokenizer is None:
        parser.error("give the prompt: --ids 1,2,3, or --tokenizer tokenizer.json TEXT")
    try:
        answer(options)
    except ingot_runtime.BundleError as error:
        sys.exit(f"error: {error}")
    print()


def numbers(text: str) -> list[int]:
    """Read the numbers of tokens."""
    return [int(item) for item in text.split(",")]


def size(text: str) -> tuple[str, int]:
    """Read a size and its name."""
    name, _, number = text.partition("=")
    return name, int(number)


def answer(options: argparse.Namespace) -> None:
    """Print what follows the prompt."""
    session = ingot_runtime.load(options.bundle, threads=options.threads)
    if not session.states:
        sys.exit(f"error: {options.bundle} is no decoder: it continues no input by an output")
    settings = options.count, options.temperature, options.seed, None, dict(options.size)
    if options.tokenizer is None:
        for token in generated(session, options.ids, *settings):
            print(token, end=" ", flush=True)
    else:
        speak(session, options.tokenizer, options.text, settings)


def speak(
    session: ingot_runtime.Session,
    path: str,
    text: str,
    settings: tuple[int, float, int, None, dict[str, int]],
) -> None:
    """Print the text that the tokens so far have added, whenever one is there."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    tokens = tokenizer.encode(text).ids
    shown, prompt = tokenizer.decode(tokens), list(tokens)
    print(shown, end="", flush=True)
    for token in generated(session, prompt, *settings):
        tokens.append(token)
        whole = tokenizer.decode(tokens)
        if not whole.endswith("\N{REPLACEMENT CHARACTER}"):  # the rest of a letter is to come
            print(whole[len(shown) :], end="", flush=True)
            shown = whole


if __name__ == "__main__":
    main()
