#!/usr/bin/env python3
"""Compiles each header alone, so that none needs what another happens to include.

    tools/check_headers.py [--root DIR] [--build DIR] [--compiler g++] [--jobs N]

Include paths and definitions come from the build folder's compile_commands.json. A header whose name
holds an instruction set (avx2, avx512, avx_vnni, amx) is compiled for it. x.h is not compiled again where
the build compiles a source that includes it before anything else (and without precompiled headers, as tests
have them): the build is that check.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lint_common import code_files, finish, root_argument

ISA_FLAGS = {"avx512": "-mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mfma -mf16c",
             "avx_vnni": "-mavx2 -mfma -mf16c -mavxvnni",
             "avx2": "-mavx2 -mfma -mf16c",
             "amx": "-mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c -mamx-tile -mamx-int8"}


def read_database(build):
    """The entries of compile_commands.json; none without a build."""
    database = build / "compile_commands.json" if build else None
    return json.loads(database.read_text()) if database and database.is_file() else []


def first_headers(database):
    """What the sources of the build include first, as they write it: "tensor/dtype.h"."""
    firsts = set()
    for entry in database:
        source = Path(entry["file"])
        if "cmake_pch" in entry["command"] or source.suffix != ".cc":
            continue
        first = re.search(r'^#include [<"](.*)[>"]$', source.read_text(), re.M)
        if first:
            firsts.add(first[1])
    return firsts


def built_alone(header, root, firsts):
    """Whether a source of the build includes the header, which is guarded, before anything else."""
    named = {header.relative_to(root / folder).as_posix() for folder in ("include", "src", "apps")
             if header.is_relative_to(root / folder)}
    return bool(named & firsts) and bool(re.search(r"^#pragma once$", header.read_text(), re.M))


def project_flags(database):
    """Every include path and definition of the build, in order, without repeats."""
    flags = {}
    for entry in database:
        words = shlex.split(entry["command"])
        for i, word in enumerate(words):
            if word == "-isystem":
                flags[(word, words[i + 1])] = None
            elif re.match(r"-[ID].", word):
                flags[(word,)] = None
    return [word for words in flags for word in words]


def isa_flags(header):
    for isa, flags in ISA_FLAGS.items():
        if isa in header.name:
            return flags.split()
    return ["-march=x86-64-v2"] if os.uname().machine == "x86_64" else []


def compile_alone(header, root, compiler, flags):
    """The compiler's complaint, or nothing."""
    # The header comes twice: a missing #pragma once shows as well.
    language = ["-x", "c"] if header.name.startswith("c_api") else ["-x", "c++", "-std=c++20"]
    name = header.resolve()
    source = f'#include "{name}"\n#include "{name}"\n'
    command = [compiler, *language, "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
               f"-I{root / 'src'}", f"-I{root / 'include'}", *flags, *isa_flags(header), "-"]
    result = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    return result.stderr if result.returncode else ""


def main():
    parser = argparse.ArgumentParser(description="Compile each header alone.")
    root_argument(parser)
    parser.add_argument("--build", type=Path, help="a configured build folder")
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    args = parser.parse_args()
    root = args.root.resolve()
    database = read_database(args.build)
    flags = project_flags(database)
    firsts = first_headers(database)
    every = code_files(root, ("include", "src", "apps"), (".h",))
    headers = [h for h in every if not built_alone(h, root, firsts)]
    with ThreadPoolExecutor(args.jobs) as pool:
        complaints = pool.map(lambda h: compile_alone(h, root, args.compiler, flags), headers)
    errors = []
    for header, complaint in zip(headers, complaints):
        if complaint:
            errors.append(f"{header.relative_to(root)}: does not compile alone\n{complaint}")
    finish("check_headers", errors, f"{len(headers)} headers compiled, {len(every)} in all")


if __name__ == "__main__":
    main()
