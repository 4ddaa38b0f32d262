#!/usr/bin/env python3
"""Compiles each header alone, so that none needs what another happens to include.

    tools/check_headers.py [--root DIR] [--build DIR] [--compiler g++] [--jobs N] [--precompiled DIR]

Include paths and definitions come from the build folder's compile_commands.json. Most of such a compilation is
the standard library, which is compiled once, in advance. What that hides is looked for in the text: each name
of `std::` has to be promised by a header that the header includes, itself or through headers of the project
(standard_names.py). A header whose name holds an instruction set (avx2, avx512, avx_vnni, amx) is compiled for
it, and that of C as C, both without the precompiled library.

One compilation does for many headers (header_batches.py). Where it fails, each of them is compiled by itself, and
that is what counts; so is a header that can not be put together with others.
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

from header_batches import batches
from lint_common import code_files, finish, root_argument
from standard_names import STANDARD_HEADERS, Includes, missing

ISA_FLAGS = {"avx512": "-mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mfma -mf16c",
             "avx_vnni": "-mavx2 -mfma -mf16c -mavxvnni",
             "avx2": "-mavx2 -mfma -mf16c",
             "amx": "-mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c -mamx-tile -mamx-int8"}


def read_database(build, root):
    """The entries of compile_commands.json but those of tests/, whose definitions are no header's; none without a build."""
    database = build / "compile_commands.json" if build else None
    entries = json.loads(database.read_text()) if database and database.is_file() else []
    return [entry for entry in entries if not Path(entry["file"]).is_relative_to(root / "tests")]


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
    """Compiles the standard library in advance, if the folder has none; the header to include before all others."""
    header = Path(folder) / "standard.h"
    if not Path(f"{header}.gch").is_file():
        header.write_text("".join(f"#include <{name}>\n" for name in STANDARD_HEADERS))
        command = [compiler, "-x", "c++-header", "-std=c++20", *common, str(header), "-o", f"{header}.gch"]
        subprocess.run(command, check=True)
        # Were the precompiled one not used, its source would be: that is not there any more.
        header.write_text("#error the precompiled standard library was not used\n")
    return header


class Compiler:
    """Compiles text with the flags of the build."""

    def __init__(self, program, common, standard):
        self.program = program
        self.common = common
        self.standard = standard

    def complaint(self, source, flags=(), language="c++"):
        """What the compiler says against the text, or nothing."""
        words = ["-x", language]
        if language == "c++":
            words += ["-std=c++20", *([] if flags else ["-Winvalid-pch", "-include", str(self.standard)])]
        command = [self.program, *words, "-fsyntax-only", *self.common, *flags, "-"]
        result = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
        return result.stderr or f"status {result.returncode}" if result.returncode else ""

    def alone(self, header):
        """What the compiler says against a header, or nothing."""
        # The header comes twice: a missing #pragma once shows as well.
        source = f'#include "{header}"\n' * 2
        return self.complaint(source, isa_flags(header), "c" if is_c(header) else "c++")


def is_c(header):
    """Whether a header is one of C."""
    return header.name.startswith("c_api")


def compile_all(headers, includes, compiler, jobs):
    """What the compiler says against each header, and how many were compiled by themselves."""
    with ThreadPoolExecutor(jobs) as pool:
        together = batches([header for header in headers if not is_c(header)], includes, isa_flags)
        failed = list(pool.map(lambda batch: compiler.complaint(batch.text, batch.flags), together))
        shown = {header for batch, failure in zip(together, failed) if not failure for header in batch.shows}
        rest = [header for header in headers if header not in shown]
        return dict(zip(rest, pool.map(compiler.alone, rest))), len(rest)


def main():
    parser = argparse.ArgumentParser(description="Compile each header alone.")
    root_argument(parser)
    parser.add_argument("--build", type=Path, help="a configured build folder")
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--precompiled", type=Path, help="keep the precompiled library here for the next run")
    args = parser.parse_args()
    root = args.root.resolve()
    common = common_flags(root, project_flags(read_database(args.build, root)))
    headers = code_files(root, ("include", "src", "apps"), (".h",))
    includes = Includes([root / folder for folder in ("src", "include", "apps")])
    errors = []
    for header in headers:
        if not is_c(header):
            errors += [f"{header.relative_to(root)}: {complaint}" for complaint in missing(header, includes)]
    with tempfile.TemporaryDirectory() as folder:
        standard = precompile(args.precompiled or folder, args.compiler, common)
        complaints, by_themselves = compile_all(headers, includes, Compiler(args.compiler, common, standard), args.jobs)
    for header, complaint in complaints.items():
        if complaint:
            errors.append(f"{header.relative_to(root)}: does not compile alone\n{complaint}")
    finish("check_headers", errors, f"{len(headers)} headers compiled, {by_themselves} of them by themselves")


if __name__ == "__main__":
    main()
