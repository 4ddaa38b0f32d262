"""Puts headers together so that one compilation shows of each that it compiles alone.

A block is the text of a header with that of all headers of the project which it includes, each once, as the compiler
would see it. Every block has the namespace `oasr` under a name of its own, so that of the blocks of a batch none sees
another. What namespaces do not keep apart is kept apart by the choice of the headers: those of a batch include the
same headers from outside the project, and one that is not plain (see there), or includes one that is not, is in none.

A block also shows that a header inside it compiles alone, if nothing stands before that one which it does not
include itself: no block has to be made for such a header. So that there are many, a block begins with the longest
chain of headers that each include the one before.
"""

import re
from dataclasses import dataclass

from standard_names import INCLUDE, NOT_CODE, STANDARD_HEADERS

BATCH_LINES = 40000  # of text: the compiler has about half a gigabyte then
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)
ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b[^\n]*", re.M)


def plain(text):
    """Whether a header is a guard, then includes without conditions, then namespace oasr with nothing beside it."""
    uncommented = re.sub(NOT_CODE, lambda part: " " if part[0][0] == "/" else part[0], text)
    if not ONCE.search(uncommented):
        return False
    code = re.sub(ONCE, "", uncommented)
    includes = list(INCLUDE.finditer(code))
    if includes and re.sub(INCLUDE, "", code[:includes[-1].end()]).strip():
        return False
    depth, outside = 0, ""
    for part in re.split(r"([{}])", re.sub(NOT_CODE, " ", re.sub(DIRECTIVE, "", code))):
        depth += {"{": 1, "}": -1}.get(part, 0)
        outside += "" if depth else part
    return not re.sub(r"\bnamespace oasr(::\w+)*\s*}", "", outside).strip()


@dataclass
class Block:
    """One header's text, and the headers that it shows to compile alone."""
    shows: list
    lines: list
    macros: set


@dataclass
class Batch:
    """Text for one compilation, with the flags that it needs, and the headers that it shows to compile alone."""
    flags: tuple
    text: str
    shows: list


def chain_of(header, members, includes):
    """The header after members that it includes, each of which includes the one before."""
    chain = [header]
    while inner := includes.project(chain[0]) & members - {chain[0]}:
        chain.insert(0, max(inner, key=lambda path: (len(includes.project(path)), path)))
    return chain


def block_of(chain, includes):
    """The block of the last header of a chain."""
    block = Block([], [], set())
    met, before = set(), set()  # the headers that have begun, and those that have ended

    def add(path):
        met.add(path)
        text = path.read_text()
        block.macros.update(DEFINE.findall(text))
        block.lines.append(f'# 1 "{path}" 1')
        for number, line in enumerate(re.sub(ONCE, "", text).split("\n"), 1):
            include = INCLUDE.match(line)
            inner = include and includes.find(include[2])
            if not inner:
                block.lines.append(line)
            elif inner in met:
                block.lines.append("")
            else:
                add(inner)
                block.lines.append(f'# {number + 1} "{path}" 2')
        if before <= includes.project(path):
            block.shows.append(path)
        before.add(path)

    for path in chain:
        if path not in met:
            add(path)
            block.lines.append('# 1 "" 2')
    return block


def batch_of(flags, blocks):
    """The batch of some blocks."""
    text = []
    for number, block in enumerate(blocks):
        text += [f"#define oasr oasr_{number}", *block.lines, "#undef oasr"]
        text += [f"#undef {macro}" for macro in sorted(block.macros)]
    return Batch(flags, "\n".join(text) + "\n", [header for block in blocks for header in block.shows])


def batches(headers, includes, flags_of):
    """The batches of the headers that can be in one, the largest first."""
    kinds = {}
    for header in headers:
        if all(plain(path.read_text()) for path in includes.project(header)):
            foreign = frozenset(includes.of(header) - set(STANDARD_HEADERS))
            kinds.setdefault((foreign, tuple(flags_of(header))), []).append(header)
    found = []
    for (_, flags), members in kinds.items():
        wanted, blocks, lines = set(members), [], 0
        for header in sorted(members, key=lambda h: -len(includes.project(h))):
            if header not in wanted:
                continue
            block = block_of(chain_of(header, wanted, includes), includes)
            block.shows = [h for h in block.shows if h in wanted]
            wanted -= set(block.shows)
            blocks.append(block)
            lines += len(block.lines)
            if lines > BATCH_LINES:
                found.append(batch_of(flags, blocks))
                blocks, lines = [], 0
        found += [batch_of(flags, blocks)] if blocks else []
    return sorted(found, key=lambda batch: -len(batch.text))
