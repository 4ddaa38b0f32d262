#!/usr/bin/env python3
"""Looks whether every CUDA kernel starts with in_order().

    tools/check_kernels.py [--root DIR]

A queue starts the blocks of a kernel while the one before it still runs (kernels/cuda/in_order.cuh). A kernel
that does not wait would read what is not yet written, now and then. A kernel that reads weights or passed arguments before it
waits says which, in_order([&] {...}), and may name them first.
"""

import argparse
import re

from lint_common import finish, root_argument

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def body(text, start):
    """What follows the opening brace of the function whose declaration begins at `start`, or None."""
    depth = 0
    for i in range(start, len(text)):
        if text[i] in "()":
            depth += 1 if text[i] == "(" else -1
        elif depth == 0 and text[i] in "{;":
            return text[i + 1:] if text[i] == "{" else None
    return None


def says_what(text):
    """Whether the function, whose body text begins with, calls in_order() with what it does before."""
    depth = 1
    for i, letter in enumerate(text):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if depth == 0:
            return re.search(r"\bin_order\(\[&\]", text[:i]) is not None
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root_argument(parser)
    root = parser.parse_args().root
    errors, kernels = [], 0
    for path in sorted([*(root / "src").rglob("*.cu"), *(root / "src").rglob("*.cuh")]):
        text = COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), path.read_text())
        for kernel in re.finditer(r"\b__global__\b", text):
            rest = body(text, kernel.end())
            kernels += rest is not None
            if rest is not None and not re.match(r"\s*(cuda::)?in_order\(\);", rest) and not says_what(rest):
                line = text.count("\n", 0, kernel.start()) + 1
                errors.append(f"{path.relative_to(root)}:{line}: a kernel begins with in_order()")
    finish("check_kernels", errors, f"{kernels} kernels")


if __name__ == "__main__":
    main()
