#!/usr/bin/env python3
"""Plants one violation at a time in a small tree and expects the right linter to name it."""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent

CLEAN = {
    "src/CMakeLists.txt": "foreach(module\n    base      # 0\n    tensor text  # 1\n    testing  # tests\n"
                          "    kernels   # 3\n    api)      # 9\n  if(x)\n",
    "src/base/CMakeLists.txt": "oasr_add_module(base SOURCES base.cc)\n",
    "src/base/base.h": "#pragma once\n#include \"oasr/result.h\"\nint base();\n",
    "src/base/base.cc": "#include \"base/base.h\"\nint base() { return 1; }\n",
    "src/tensor/CMakeLists.txt": "oasr_add_module(tensor SOURCES tensor.cc DEPS base)\n",
    "src/tensor/tensor.h": "#pragma once\n#include \"base/base.h\"\n",
    "src/tensor/tensor_test.cc": "#include \"tensor/tensor.h\"\n#include \"testing/paths.h\"\n",
    "src/text/CMakeLists.txt": "oasr_add_module(text SOURCES text.cc)\n",
    "src/testing/paths.h": "#pragma once\n",
    "src/kernels/CMakeLists.txt": "oasr_add_module(kernels SOURCES k.cc)\n",
    "src/api/CMakeLists.txt": "oasr_add_module(api SOURCES api.cc DEPS tensor)\n",
    "src/api/api.cc": "#include \"oasr/recognizer.h\"\n#include \"tensor/tensor.h\"\n",
    "include/oasr/result.h": "#pragma once\n",
    "include/oasr/recognizer.h": "#pragma once\n#include \"oasr/result.h\"\n",
    "apps/cli/main.cc": "#include \"oasr/recognizer.h\"\nint main() {}\n",
}
BODY = "  x += 1;\n"


def header(code, *includes):
    """A header with code in the project's namespace, which tools/check_headers.py compiles together with others."""
    return "#pragma once\n" + "".join(f"#include {name}\n" for name in includes) + f"namespace oasr {{\n{code}\n}}\n"


BASE = header("struct Base {};", "<nlohmann/json.hpp>", "<fmt/format.h>")

# linter, what is planted, files over CLEAN (ROOT: their folder), text that the complaint must hold ("" = no complaint)
CASES = [
    ("check_layers", "nothing", {}, ""),
    ("check_layers", "an undeclared include",
     {"src/text/text.cc": "#include \"base/base.h\"\n"}, "base is not in the DEPS of text"),
    ("check_layers", "an include in a comment", {"src/text/text.cc": "// #include \"base/base.h\"\n"}, ""),
    ("check_layers", "an unused dependency",
     {"src/text/CMakeLists.txt": "oasr_add_module(text DEPS base)\n"}, "DEPS base: never included"),
    ("check_layers", "an upward include",
     {"src/base/base.cc": "#include \"tensor/tensor.h\"\n"}, "tensor (layer 1) is not below base"),
    ("check_layers", "an upward dependency",
     {"src/base/CMakeLists.txt": "oasr_add_module(base DEPS tensor)\n"}, "layer 1 is not below"),
    ("check_layers", "a sideways include",
     {"src/text/text.cc": "#include \"tensor/tensor.h\"\n"}, "tensor (layer 1) is not below text"),
    ("check_layers", "a test that looks up",
     {"src/base/base_test.cc": "#include \"tensor/tensor.h\"\n"}, "may not look above"),
    ("check_layers", "a test helper in the library",
     {"src/text/text.cc": "#include \"testing/paths.h\"\n"}, "only tests may use testing"),
    ("check_layers", "the facade below itself",
     {"src/text/text.cc": "#include \"oasr/recognizer.h\"\n"}, "only api and eval and quantize implement the facade"),
    ("check_layers", "an application that reaches in",
     {"apps/cli/main.cc": "#include \"base/base.h\"\n"}, "only include/oasr may be included"),
    ("check_layers", "a CUDA header in a host file",
     {"src/kernels/k.cc": "#include <cuda_runtime.h>\n"}, "CUDA headers belong"),
    ("check_layers", "a CUDA header in its place", {"src/kernels/k.cu": "#include <cuda_runtime.h>\n"}, ""),
    ("check_layers", "a relative include",
     {"src/base/base.cc": "#include \"base.h\"\n"}, "includes start at src/"),
    ("check_layers", "a module without a layer",
     {"src/extra/CMakeLists.txt": "oasr_add_module(extra)\n"}, "missing in the table of layers"),
    ("check_sizes", "nothing", {}, ""),
    ("check_sizes", "a long file", {"src/text/text.cc": "// x\n" * 501}, "501 lines, the limit is 500"),
    ("check_sizes", "a long function",
     {"src/text/text.cc": "namespace a {\nvoid f(int x) {\n" + BODY * 59 + "}\n}\n"}, "f has 61 lines"),
    ("check_sizes", "a function at the limit",
     {"src/text/text.cc": "namespace a {\nvoid f(int x) {\n" + BODY * 58 + "}\n}\n"}, ""),
    ("check_sizes", "braces in strings and comments",
     {"src/text/text.cc": "void f() { auto x = \"}\"; /* } */ char c = '}';\n" + BODY * 60 + "}\n"},
     "f has 62 lines"),
    ("check_sizes", "a long constructor",
     {"src/text/text.cc": "struct S {\n S(int a)\n : a_{a}, b_(a) {\n" + BODY * 60 + "}\n};\n"},
     "S has 63 lines"),
    ("check_sizes", "a long member of a class template",
     {"src/text/text.h": "template <class T>\nclass S : B<T> {\n void f() const noexcept {\n"
      + BODY * 60 + "}\n};\n"}, "f has 62 lines"),
    ("check_sizes", "a long table", {"src/text/text.cc": "const int k[] = {\n" + "1,\n" * 99 + "};\n"}, ""),
    ("check_sizes", "a kernel of 150 lines",
     {"src/kernels/k.cc": "void f(int x) {\n" + BODY * 148 + "}\n"}, ""),
    ("check_sizes", "a kernel of 151 lines",
     {"src/kernels/k.cc": "void f(int x) {\n" + BODY * 149 + "}\n"}, "limit is 150"),
    ("check_sizes", "a long Python function",
     {"tools/x.py": "def f():\n" + "    x = 1\n" * 60}, "f has 61 lines"),
    ("check_kernels", "nothing", {}, ""),
    ("check_kernels", "a kernel that waits",
     {"src/kernels/k.cu": "__global__ void __launch_bounds__(32) k(int x) {\n  cuda::in_order();\n}\n"}, ""),
    ("check_kernels", "a declaration", {"src/kernels/k.cu": "__global__ void k(int x);\n"}, ""),
    ("check_kernels", "a kernel that starts with something else",
     {"src/kernels/k.cuh": "__global__ void k(int* x) {\n  *x = 1;\n  in_order();\n}\n"}, "k.cuh:1: a kernel begins"),
    ("check_kernels", "a kernel that waits in a comment",
     {"src/kernels/k.cu": "__global__ void k(int* x) {\n  // in_order();\n}\n"}, "a kernel begins with in_order()"),
    ("check_headers", "nothing", {}, ""),
    ("check_headers", "a header that needs another",
     {"src/text/text.h": "#pragma once\nBase f();\n"}, "text.h: does not compile alone"),
    ("check_headers", "a header that needs a standard one",
     {"src/text/text.h": "#pragma once\nstd::string f();\n"}, "std::string needs <string>"),
    ("check_headers", "a standard header through one of the project",
     {"src/text/text.h": "#pragma once\n#include \"base/base.h\"\nstd::string f();\n",
      "src/base/base.h": "#pragma once\n#include <string>\n"}, ""),
    ("check_headers", "a standard name that no header is known for",
     {"src/text/text.h": "#pragma once\n#include <list>\nstd::list<int> f();\n"}, "std::list is not in the table"),
    ("check_headers", "a header without a guard",
     {"src/text/text.h": "struct S {};\n"}, "text.h: does not compile alone"),
    ("check_headers", "a header without a guard, in the namespace",
     {"src/text/text.h": header("struct S {};").replace("#pragma once", "")}, "text.h: does not compile alone"),
    ("check_headers", "headers with what they need",
     {"src/base/base.h": BASE, "src/text/text.h": header("inline nlohmann::json f(Base) { return fmt::format(\"\"); }",
                                                         "\"base/base.h\"")}, ""),
    ("check_headers", "a header that needs the project's, compiled with it",
     {"src/base/base.h": header("struct Base {};"), "src/text/text.h": header("Base f();")},
     "text.h: does not compile alone"),
    ("check_headers", "a header that needs what another one includes before it",
     {"src/text/text.h": header("struct Base {};"), "src/tensor/tensor.h": header("Base f();"),
      "src/api/api.h": header("Base g();", "\"text/text.h\"", "\"tensor/tensor.h\"")},
     "tensor.h: does not compile alone"),
    ("check_headers", "a header that needs a definition, compiled with it",
     {"src/base/base.h": header("struct Base { int size; };"),
      "src/text/text.h": header("struct Base;\ninline int f(Base& base) { return base.size; }")},
     "text.h: does not compile alone"),
    ("check_headers", "a header that needs a macro, compiled with it",
     {"src/base/base.h": header("#define NUMBER 1"), "src/text/text.h": header("inline int f() { return NUMBER; }")},
     "text.h: does not compile alone"),
    ("check_headers", "a header that needs JSON's",
     {"src/base/base.h": BASE, "src/text/text.h": header("nlohmann::json f();")}, "text.h: does not compile alone"),
    ("check_headers", "a header that needs fmt's",
     {"src/base/base.h": BASE, "src/text/text.h": header("inline auto f() { return fmt::format(\"\"); }")},
     "text.h: does not compile alone"),
    ("check_headers", "a name beside the namespace that another header declares",
     {"src/base/base.h": "#pragma once\nnamespace CLI {\nclass App;\n}\n", "src/text/text.h": header("CLI::App& f();")},
     "text.h: does not compile alone"),
    ("check_headers", "definitions of tests that are not the same for all of them",
     {"compile_commands.json": json.dumps([{"directory": "ROOT/build", "file": f"ROOT/tests/{name}.c",
                                            "command": f"cc -DSTART={name} -c {name}.c"} for name in ("one", "two")])},
     ""),
]


def run_case(linter, files, wanted, compiler, precompiled):
    """Nothing, or how the linter's answer differs from what is wanted."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in {**CLEAN, **files}.items():
            path = Path(root) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("ROOT", root))
        command = [sys.executable, "-B", str(HERE / f"{linter}.py"), "--root", root]
        if linter == "check_headers":
            command += ["--build", root, "--compiler", compiler, "--precompiled", precompiled]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = [line for line in result.stdout.splitlines() if line.startswith("error:")]
    if result.stderr or result.returncode != bool(wanted):
        return f"status {result.returncode}: {result.stdout}{result.stderr}"
    if wanted and not any(wanted in error for error in errors):
        return f"no complaint says {wanted!r}: {errors}"
    return ""


def main():
    parser = argparse.ArgumentParser(description="Check the linters on planted violations.")
    parser.add_argument("--compiler", default="c++")
    args = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as precompiled:
        for linter, what, files, wanted in CASES:
            problem = run_case(linter, files, wanted, args.compiler, precompiled)
            print(f"{'FAIL' if problem else 'ok  '} {linter}: {what} {problem}")
            failures += bool(problem)
    print(f"lint_selftest: {failures} failure(s) of {len(CASES)}")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
