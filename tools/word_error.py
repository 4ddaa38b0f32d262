"""Word and character errors, with Whisper's English normalizer as openai-whisper ships it.

The normalizer's package is loaded by itself: openai-whisper's own __init__ would import torch. Install
it with `pip install --no-deps openai-whisper` and `pip install regex more-itertools`.
"""

import importlib
import importlib.util
import sys
from dataclasses import dataclass


@dataclass
class Errors:
    """Substitutions, deletions and insertions against `length` reference words or characters."""
    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0
    length: int = 0

    def __add__(self, other):
        return Errors(self.substitutions + other.substitutions, self.deletions + other.deletions,
                      self.insertions + other.insertions, self.length + other.length)

    @property
    def percent(self):
        total = self.substitutions + self.deletions + self.insertions
        return 100.0 * total / self.length if self.length else float("nan")


def whisper_normalizers():
    """Whisper's EnglishTextNormalizer and BasicTextNormalizer: str -> str."""
    spec = importlib.util.find_spec("whisper")
    if spec is None:
        sys.exit("the normalizer needs: pip install --no-deps openai-whisper; "
                 "pip install regex more-itertools")
    sys.path.insert(0, spec.submodule_search_locations[0])
    try:
        module = importlib.import_module("normalizers")
        return module.EnglishTextNormalizer(), module.BasicTextNormalizer()
    finally:
        sys.path.pop(0)


def english_normalizer():
    return whisper_normalizers()[0]


def align(reference, hypothesis):
    """The fewest edits that make `reference` (a sequence) into `hypothesis`."""
    # row[j]: (cost, substitutions, deletions, insertions) of reference[:i] against hypothesis[:j]
    row = [(j, 0, 0, j) for j in range(len(hypothesis) + 1)]
    for i, wanted in enumerate(reference, 1):
        above, row = row, [(i, 0, i, 0)]
        for j, got in enumerate(hypothesis, 1):
            cost, subs, dels, inss = above[j - 1]
            best = (cost, subs, dels, inss) if wanted == got else (cost + 1, subs + 1, dels, inss)
            cost, subs, dels, inss = above[j]
            best = min(best, (cost + 1, subs, dels + 1, inss), key=lambda entry: entry[0])
            cost, subs, dels, inss = row[j - 1]
            best = min(best, (cost + 1, subs, dels, inss + 1), key=lambda entry: entry[0])
            row.append(best)
    return Errors(*row[-1][1:], len(reference))


def word_errors(reference, hypothesis, normalize):
    return align(normalize(reference).split(), normalize(hypothesis).split())


def joined_character_errors(reference, hypothesis, normalize):
    """Characters without spaces: for spelled letters, which Whisper writes as words."""
    return align(normalize(reference).replace(" ", ""), normalize(hypothesis).replace(" ", ""))
