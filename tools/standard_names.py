"""Which standard headers promise a name: what tools/check_headers.py holds headers to."""

import re

# Any of a row's headers is enough for any of its names.
ROWS = [
    ("string", "string to_string stod stoll u32string getline"),
    ("string string_view", "string_view u32string_view"),
    ("vector", "vector"), ("span", "span as_bytes as_writable_bytes"), ("array", "array"),
    ("map", "map multimap"), ("set", "set"), ("deque", "deque"), ("unordered_map", "unordered_map"),
    ("optional", "optional nullopt"),
    ("variant", "variant monostate"),
    ("utility variant", "in_place_index"),
    ("memory", "unique_ptr shared_ptr make_unique make_shared dynamic_pointer_cast"),
    ("functional", "function ref"), ("future", "future future_status async launch"), ("tuple", "ignore"),
    ("functional map set", "less"),
    ("filesystem", "filesystem"), ("chrono", "chrono"), ("numbers", "numbers"), ("atomic", "atomic memory_order_relaxed"),
    ("regex", "regex sregex_iterator smatch regex_search"),
    ("mutex", "mutex"), ("thread", "thread"), ("condition_variable", "condition_variable"),
    ("random", "mt19937 mt19937_64 uniform_int_distribution uniform_real_distribution normal_distribution"),
    ("fstream", "ifstream ofstream"), ("sstream", "istringstream"), ("fstream sstream ios iostream", "ios"),
    ("iterator fstream sstream", "istreambuf_iterator"),
    ("iterator array map span string string_view vector", "begin end size ssize"),
    ("cstring", "memcpy memset memcmp"), ("cstdio", "printf"),
    ("cmath", "sin cos exp log pow sqrt fma rint nearbyint isnan nanf fabs"),
    ("cmath cstdlib", "abs"),
    ("algorithm", "min max clamp copy copy_n fill fill_n find equal"),
    ("algorithm ranges", "ranges"),
    ("bit", "bit_cast endian"), ("limits", "numeric_limits"),
    ("type_traits", "is_same_v is_void_v is_arithmetic_v"), ("concepts", "invocable"),
    ("new", "bad_alloc"), ("stdexcept", "runtime_error logic_error"),
    ("exception stdexcept", "exception"),
    ("system_error filesystem", "error_code"), ("system_error", "system_error"),
    ("utility map", "pair"),
    ("utility", "exchange forward swap make_index_sequence index_sequence"),
    ("utility algorithm", "move"),
    ("utility tuple array variant", "get"),
    ("initializer_list string string_view vector map set deque unordered_map utility optional memory algorithm",
     "initializer_list"),
    ("cstddef", "byte ptrdiff_t"),
    ("cstddef cstring cstdio cstdlib cwchar ctime", "size_t"),
    ("cstdint", "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t"),
]
HEADERS_OF = {name: frozenset(headers.split()) for headers, names in ROWS for name in names.split()}
STANDARD_HEADERS = sorted({header for headers in HEADERS_OF.values() for header in headers})

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"\(.*?\)"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'', re.S)


class Includes:
    """What a header includes, itself or through headers of the project."""

    def __init__(self, folders):
        self.folders = folders
        self.known = {}

    def find(self, name):
        """The header of the project of that name, or nothing."""
        return next((folder / name for folder in self.folders if (folder / name).is_file()), None)

    def project(self, path):
        """The headers of the project that it includes, and itself."""
        return self._all(path)[0]

    def of(self, path):
        """The system headers that it includes."""
        return self._all(path)[1]

    def _all(self, path):
        if path not in self.known:
            self.known[path] = project, system = {path}, set()  # for a circle of includes
            for kind, name in INCLUDE.findall(path.read_text()):
                inner = self.find(name)
                if inner:
                    project |= self.project(inner)
                    system |= self.of(inner)
                elif kind == "<":
                    system.add(name)
        return self.known[path]


def missing(path, includes):
    """A complaint for each standard name of the header that nothing it includes promises."""
    have = includes.of(path)
    code = NOT_CODE.sub(" ", re.sub(INCLUDE, "", path.read_text()))
    complaints = []
    for name in sorted(set(re.findall(r"\bstd::(\w+)", code))):
        headers = HEADERS_OF.get(name)
        if headers is None:
            complaints.append(f"std::{name} is not in the table of tools/standard_names.py")
        elif not headers & have:
            complaints.append(f"std::{name} needs " + " or ".join(f"<{h}>" for h in sorted(headers)))
    return complaints
