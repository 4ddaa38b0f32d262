#!/usr/bin/env python3
"""Looks whether a build without CUDA would link: whether cuda_absent.cc has a stand-in for every function of the CUDA
sources that other sources call.

    tools/check_absent.py --build DIR ABSENT.o

DIR: the folder of a finished build with CUDA, whose objects are read with nm. ABSENT.o: cuda_absent.cc, compiled.
"""

import argparse
import subprocess
from pathlib import Path

from lint_common import finish


def symbols(objects, kind):
    """Names that the objects define (--defined-only) or want (--undefined-only)."""
    if not objects:
        return set()
    out = subprocess.run(["nm", "-A", kind, *map(str, objects)], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in out.splitlines()}


def readable(name):
    """A C++ name as it is written."""
    return subprocess.run(["c++filt", name], capture_output=True, text=True, check=True).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("absent", type=Path)
    args = parser.parse_args()
    own = args.absent.resolve()
    objects = [path for path in sorted((args.build / "src").rglob("*.o"))
               if path.resolve() != own and "oasr_test_" not in str(path)]
    cuda = [path for path in objects if path.name.endswith(".cu.o")]
    others = [path for path in objects if not path.name.endswith(".cu.o")]
    called = symbols(others, "--undefined-only") & symbols(cuda, "--defined-only")
    missing = called - symbols([own], "--defined-only") - symbols(others, "--defined-only")
    errors = [f"src/kernels/cuda_absent.cc: no stand-in for {readable(name)}" for name in sorted(missing)]
    if not called:
        errors.append(f"{args.build}: nothing that is called is of a CUDA source; is it a finished build with CUDA?")
    finish("check_absent", errors, f"{len(called)} functions of {len(cuda)} CUDA sources")


if __name__ == "__main__":
    main()
