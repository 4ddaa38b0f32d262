"""What the linters of this folder share: finding sources and reporting."""

import sys
from pathlib import Path

CODE_FOLDERS = ("src", "include", "apps", "examples", "tests", "bench")
CODE_SUFFIXES = (".h", ".cc", ".c", ".cu", ".cuh")


def code_files(root, folders=CODE_FOLDERS, suffixes=CODE_SUFFIXES):
    """Paths of the C and C++ sources of `folders`, sorted."""
    found = [p for folder in folders for p in (root / folder).rglob("*")]
    return sorted(p for p in found if p.suffix in suffixes and p.is_file())


def finish(tool, errors, summary):
    """Prints one line an error, then what was checked; leaves with status 1 on errors."""
    for error in errors:
        print(f"error: {error}")
    print(f"{tool}: {len(errors)} error(s); {summary}")
    sys.exit(1 if errors else 0)


def root_argument(parser):
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent,
                        help="the project's root (default: the folder above this one)")
