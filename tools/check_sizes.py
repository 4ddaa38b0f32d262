#!/usr/bin/env python3
"""Limits of the house style: files of 500 lines and functions of 60; 800 and 150 in src/kernels.

    tools/check_sizes.py [--root DIR] [--list N]

A function counts from the first line of its signature to its closing brace. C++ functions are found
by matching braces, which is exact enough for code formatted by clang-format. --list shows the N
longest.
"""

import argparse
import ast
import re

from lint_common import CODE_FOLDERS, code_files, finish, root_argument

LIMITS = {"kernels": (800, 150), "other": (500, 60)}
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")
INITIALIZER_LIST = re.compile(r"\)[^()]*(?<!:):(?!:)")
LEXEMES = re.compile(
    r'R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"|"(?:[^"\\\n]|\\.)*"'
    r"|(?<![0-9A-Fa-f])'(?:[^'\\\n]|\\.)+'"
    r"|//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.S | re.M)


def blank(text):
    """`text` with strings, comments and preprocessor lines blanked; lines stay where they are."""
    return LEXEMES.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def matching_brace(text, at):
    """The position of the brace that closes text[at]."""
    depth = 0
    for i in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return i
    return len(text) - 1


def opens_scope(chunk):
    """Whether a brace after `chunk` opens a namespace or type, whose members are looked at."""
    head = re.sub(r"template\s*<[^{}]*?>(?=\s*(class|struct|union|enum)\b)", "", chunk)
    head = re.sub(r"<[^<>]*>", "", head)
    if re.search(r"\b(class|struct|union|enum)\b", head):
        return "(" not in re.sub(r"\b(alignas|__attribute__)\s*\([^)]*\)+", "", head)
    return bool(SCOPE.search(head)) and "(" not in head


def opens_function(chunk):
    """Whether a brace after `chunk` opens a function's body (not an initializer)."""
    if "(" not in chunk or re.search(r"(?<![=!<>+\-*/|&^\[])=\s*(\[[^\]]*\].*)?$", chunk, re.S):
        return False
    before = chunk.rstrip()
    if INITIALIZER_LIST.search(chunk) and re.search(r"[\w>]$", before):
        return False  # x_{1} of a constructor's initializer list
    return not re.search(r"[=,(]$", before)


def functions(text):
    """(name, first line, last line) of every function of a C++ source."""
    code = blank(text)
    found, at, start = [], 0, 0
    while at < len(code):
        char = code[at]
        if char in ";}":
            start = at + 1
        elif char == "{":
            chunk = code[start:at]
            if opens_scope(chunk):
                start = at + 1
            else:
                end = matching_brace(code, at)
                if opens_function(chunk):
                    found.append(describe(code, chunk, start, end))
                    start = end + 1
                at = end  # an initializer continues its statement
        at += 1
    return found


def describe(code, chunk, start, end):
    # Access specifiers and lines of macro calls without a semicolon are not part of it.
    signature = re.sub(r"^\s*((public|private|protected)\s*:\s*|[A-Z][A-Z0-9_]+\([^()]*\)\s*\n\s*)*",
                       "", chunk)
    first = start + len(chunk) - len(signature)
    name = re.search(r"([~\w:]+|operator\s*[^\s(]+)\s*\(([^)]*)", signature)
    shown = name[1] if name else signature.split("(")[0][-40:]
    if name and name[1] in ("TEST", "TEST_F", "TEST_P", "BENCHMARK_F"):
        shown = f"{name[1]}({' '.join(name[2].split())})"
    line = code.count("\n", 0, first) + 1
    return shown, line, code.count("\n", 0, end) + 1


def python_functions(text):
    return [(node.name, node.lineno, node.end_lineno) for node in ast.walk(ast.parse(text))
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def main():
    parser = argparse.ArgumentParser(description="Check the lengths of files and functions.")
    root_argument(parser)
    parser.add_argument("--list", type=int, default=0, metavar="N", help="show the N longest")
    args = parser.parse_args()
    root = args.root.resolve()
    errors, lengths, files = [], [], 0
    folders = (*CODE_FOLDERS, "tools", "scripts")
    for path in code_files(root, folders, (".h", ".cc", ".c", ".cu", ".cuh", ".py", ".sh")):
        place, text = path.relative_to(root), path.read_text(errors="replace")
        most_lines, most_body = LIMITS["kernels" if place.parts[:2] == ("src", "kernels")
                                       else "other"]
        lines, files = text.count("\n"), files + 1
        if lines > most_lines:
            errors.append(f"{place}: {lines} lines, the limit is {most_lines}")
        found = {".py": python_functions, ".sh": lambda text: []}.get(path.suffix, functions)(text)
        for name, first, last in found:
            length = last - first + 1
            lengths.append((length, f"{place}:{first}: {name}"))
            if length > most_body:
                errors.append(f"{place}:{first}: {name} has {length} lines, the limit is "
                              f"{most_body}")
    for length, where in sorted(lengths, reverse=True)[:args.list]:
        print(f"{length:4} {where}")
    middle = sorted(length for length, _ in lengths)[len(lengths) // 2] if lengths else 0
    finish("check_sizes", errors, f"{files} files, {len(lengths)} functions, median {middle} lines")


if __name__ == "__main__":
    main()
