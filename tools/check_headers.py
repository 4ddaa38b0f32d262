#!/usr/bin/env python3
"""Compiles each header alone, so that none needs what another happens to include.

    tools/check_headers.py [--root DIR] [--build DIR] [--compiler g++] [--jobs N]

Include paths and definitions come from the build folder's compile_commands.json. Most of such a compilation is
the standard library, which is compiled once, in advance. What that hides is looked for in the text: each name
of `std::` has to be promised by a header that the header includes, itself or through headers of the project
(standard_names.py). A header whose name holds an instruction set (avx2, avx512, avx_vnni, amx) is compiled for
it, and that of C as C, both without the precompiled library.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lint_common import code_files, finish, root_argument
from standard_names import STANDARD_HEADERS, Includes, missing

ISA_FLAGS = {"avx512": "-mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mfma -mf16c",
             "avx_vnni": "-mavx2 -mfma -mf16c -mavxvnni",
             "avx2": "-mavx2 -mfma -mf16c",
             "amx": "-mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c -mamx-tile -mamx-int8"}


def read_database(build):
    """The entries of compile_commands.json; none without a build."""
    database = build / "compile_commands.json" if build else None
    return json.loads(database.read_text()) if database and database.is_file() else []


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
    """The flags of the instruction set in a header's name."""
    return next((flags.split() for isa, flags in ISA_FLAGS.items() if isa in header.name), [])


def common_flags(root, flags):
    """What is the same for the precompiled library and the headers that use it."""
    machine = ["-march=x86-64-v2"] if os.uname().machine == "x86_64" else []
    return ["-Wall", "-Wextra", "-Werror", f"-I{root / 'src'}", f"-I{root / 'include'}", *flags, *machine]


def precompile(folder, compiler, common):
    """Compiles the standard library in advance; the header to include before all others."""
    header = Path(folder) / "standard.h"
    header.write_text("".join(f"#include <{name}>\n" for name in STANDARD_HEADERS))
    subprocess.run([compiler, "-x", "c++-header", "-std=c++20", *common, str(header), "-o", f"{header}.gch"], check=True)
    # Were the precompiled one not used, its source would be: that is not there any more.
    header.write_text("#error the precompiled standard library was not used\n")
    return header


def compile_alone(header, compiler, common, standard):
    """The compiler's complaint, or nothing."""
    # The header comes twice: a missing #pragma once shows as well.
    isa = isa_flags(header)
    if header.name.startswith("c_api"):
        language = ["-x", "c"]
    else:
        language = ["-x", "c++", "-std=c++20", *([] if isa else ["-Winvalid-pch", "-include", str(standard)])]
    name = header.resolve()
    source = f'#include "{name}"\n#include "{name}"\n'
    command = [compiler, *language, "-fsyntax-only", *common, *isa, "-"]
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
    common = common_flags(root, project_flags(read_database(args.build)))
    headers = code_files(root, ("include", "src", "apps"), (".h",))
    includes = Includes([root / folder for folder in ("src", "include", "apps")])
    errors = []
    for header in headers:
        if not header.name.startswith("c_api"):
            errors += [f"{header.relative_to(root)}: {complaint}" for complaint in missing(header, includes)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.jobs) as pool:
        standard = precompile(folder, args.compiler, common)
        complaints = pool.map(lambda h: compile_alone(h, args.compiler, common, standard), headers)
        for header, complaint in zip(headers, complaints):
            if complaint:
                errors.append(f"{header.relative_to(root)}: does not compile alone\n{complaint}")
    finish("check_headers", errors, f"{len(headers)} headers compiled")


if __name__ == "__main__":
    main()
