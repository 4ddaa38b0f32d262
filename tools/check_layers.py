#!/usr/bin/env python3
"""Compares the declared dependencies of the modules with their #includes.

    tools/check_layers.py [--root DIR]

A module is a folder of src/. The layer table is the list in src/CMakeLists.txt, where "# N" ends a
line of layer N; the dependencies are the DEPS of oasr_add_module in src/<module>/CMakeLists.txt.
Errors: an include that is not declared, a declared module that is never included, a dependency that
is not in a lower layer, a third-party CUDA header outside the places for it, and an application
that includes anything of the library but include/oasr.
"""

import argparse
import re

from lint_common import code_files, finish, root_argument

# Public headers that hold values only: any layer may use them.
VALUE_HEADERS = {"oasr/result.h", "oasr/options.h", "oasr/stream_events.h", "oasr/transcript.h",
                 "oasr/version.h"}
API_LAYER_MODULES = ("api", "eval", "quantize")  # those that implement the other public headers
TESTING = "testing"       # helpers: for *_test.cc and fuzz targets only
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
CUDA_HEADER = re.compile(r"^(cuda|cublas|cudnn|cooperative_groups|nv/)")
CUDA_PLACES = re.compile(r"^src/(device|kernels)/cuda/|\.cuh?$|/lanes_cuda\.cc$")


def layer_table(root, errors):
    """Module name -> layer, from the commented list in src/CMakeLists.txt."""
    text = (root / "src" / "CMakeLists.txt").read_text()
    block = re.search(r"foreach\(module\b(.*?)\n\s*if\(", text, re.S)
    layers = {}
    for line in block[1].splitlines() if block else []:
        names, _, layer = line.partition("#")
        number = re.match(r"\s*(\d+)", layer)
        for name in names.replace(")", " ").split():
            layers[name] = int(number[1]) if number else None
    for line in re.findall(r"\b(\w+)\)\s*#\s*(\d+)", block[1] if block else ""):
        layers[line[0]] = int(line[1])
    if not layers:
        errors.append("src/CMakeLists.txt: the table of layers is not there")
    for name, layer in layers.items():
        if layer is None and name != TESTING:
            errors.append(f"src/CMakeLists.txt: module {name} has no layer number")
    return layers


def calls(text, function):
    """The word lists of the calls of a CMake function in `text`, comments removed."""
    text = re.sub(r"#.*", "", text)
    return [m[1].split() for m in re.finditer(rf"\b{function}\s*\(([^)]*)\)", text)]


def keyword_values(words, keyword):
    """The words after `keyword`, up to the next keyword (in capitals)."""
    if keyword not in words:
        return []
    values = []
    for word in words[words.index(keyword) + 1:]:
        if word in ("SOURCES", "DEPS", "LIBS", "MODULES", "LABELS", "TIMEOUT"):
            break
        values.append(word)
    return values


def declared_deps(root, layers, errors):
    """Module name -> set of DEPS."""
    deps = {}
    for path in sorted((root / "src").glob("*/**/CMakeLists.txt")):
        folder = path.relative_to(root / "src").parts[0]
        for words in calls(path.read_text(), "oasr_add_module"):
            where = path.relative_to(root)
            if words[0] != folder:
                errors.append(f"{where}: module {words[0]} must be named like its folder {folder}")
            if words[0] not in layers:
                errors.append(f"{where}: module {words[0]} is missing in the table of layers")
            deps[words[0]] = set(keyword_values(words, "DEPS"))
    return deps


def check_declarations(deps, layers, errors):
    for module, names in deps.items():
        for name in sorted(names):
            where = f"src/{module}/CMakeLists.txt"
            if name not in layers:
                errors.append(f"{where}: DEPS {name}: there is no such module")
            elif module != TESTING and not is_below(name, module, layers):
                errors.append(f"{where}: DEPS {name}: layer {layers[name]} is not below "
                              f"layer {layers[module]} of {module}")


def is_below(name, module, layers):
    return (layers.get(name) is not None and layers.get(module) is not None
            and layers[name] < layers[module])


def includes(path):
    """(line, is_quoted, header) of every #include; comments do not count."""
    text = path.read_text(errors="replace")
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    return [(text.count("\n", 0, m.start()) + 1, m[1] == '"', m[2])
            for m in INCLUDE.finditer(text)]


def is_test(path):
    return path.stem.endswith(("_test", "_fuzz")) or path.stem.startswith("fuzz_")


class Checker:
    def __init__(self, root, layers, deps, errors):
        self.root, self.layers, self.deps, self.errors = root, layers, deps, errors
        self.used = {module: set() for module in deps}
        self.files = 0

    def error(self, path, line, text):
        self.errors.append(f"{path.relative_to(self.root)}:{line}: {text}")

    def check_file(self, path):
        self.files += 1
        place = path.relative_to(self.root).as_posix()
        for line, quoted, header in includes(path):
            if CUDA_HEADER.match(header) and not CUDA_PLACES.search(place):
                self.error(path, line, f"{header}: CUDA headers belong into src/device/cuda, "
                                       "src/kernels/cuda, *.cu and lanes_cuda.cc")
            elif header.startswith("oasr/"):
                self.check_public(path, line, header, place)
            elif place.startswith("src/"):
                self.check_module_include(path, line, quoted, header, place.split("/")[1])
            elif place.startswith(("apps/", "examples/", "include/")):
                self.check_outside(path, line, header)

    def check_public(self, path, line, header, place):
        if not (self.root / "include" / header).is_file():
            self.error(path, line, f"{header}: there is no such public header")
        module = place.split("/")[1] if place.startswith("src/") else None
        if module and header not in VALUE_HEADERS and module not in API_LAYER_MODULES \
                and not is_test(path):
            self.error(path, line, f"{header}: only {' and '.join(API_LAYER_MODULES)} implement the facade")

    def check_module_include(self, path, line, quoted, header, module):
        name = header.split("/")[0]
        if name not in self.layers or "/" not in header:
            if quoted and not (self.root / "third_party" / header).exists():
                self.error(path, line, f"{header}: includes start at src/ with the module's name")
            return
        if name == module:
            return
        self.used.setdefault(module, set())
        if is_test(path) or module == TESTING:
            if name != TESTING and module != TESTING and not is_below(name, module, self.layers):
                self.error(path, line, f"{header}: a test of {module} may not look above its layer")
            self.used[module].add(name) if not is_test(path) else None
            return
        self.used[module].add(name)
        if name == TESTING:
            self.error(path, line, f"{header}: only tests may use {TESTING}")
        elif not is_below(name, module, self.layers):
            self.error(path, line, f"{header}: {name} (layer {self.layers[name]}) is not below "
                                   f"{module} (layer {self.layers.get(module)})")
        elif name not in self.deps.get(module, set()):
            self.error(path, line, f"{header}: {name} is not in the DEPS of {module}")

    def check_outside(self, path, line, header):
        if header.split("/")[0] in self.layers and (self.root / "src" / header).exists():
            self.error(path, line, f"{header}: only include/oasr may be included here")

    def check_unused(self):
        for module, names in self.deps.items():
            for name in sorted(names - self.used.get(module, set())):
                if name in self.layers:
                    self.errors.append(f"src/{module}/CMakeLists.txt: DEPS {name}: never included")


def main():
    parser = argparse.ArgumentParser(description="Compare DEPS and #includes of the modules.")
    root_argument(parser)
    root = parser.parse_args().root.resolve()
    errors = []
    layers = layer_table(root, errors)
    deps = declared_deps(root, layers, errors)
    check_declarations(deps, layers, errors)
    checker = Checker(root, layers, deps, errors)
    for path in code_files(root, ("src", "include", "apps", "examples")):
        checker.check_file(path)
    checker.check_unused()
    finish("check_layers", errors, f"{len(deps)} modules, {checker.files} files")


if __name__ == "__main__":
    main()
