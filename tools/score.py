#!/usr/bin/env python3
"""Word error of oasr beside the reference implementation's, on the same utterances.

    tools/score.py [--models base tiny.en] [--sets an4 …] [--limit N] [--write docs/accuracy.md]

Needs the full test data (OASR_TEST_DATA, else ../shared), which holds the reference transcripts, the
weights of scripts/get_test_weights.sh, and build/release with its target oasr_peer_worker (which is
built). Run it with a Python that has openai-whisper's normalizer (build/peers-venv/bin/python).

English, greedy, no timestamps, the reference's path for clips of 30 s or less. Both sides are scored
by Whisper's English normalizer on the utterances that have a reference transcript. AN4 spells
letters, which Whisper joins, so it is scored by characters without spaces as well. --write puts the
table between the marks of the page. With a scheme (--dtype int8_w8a8) the table is one of its own: the
reference is full precision, and the difference of word errors and a sum over all sets are added.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from word_error import Errors, english_normalizer, joined_character_errors, word_errors

ROOT = Path(__file__).resolve().parent.parent
SETS = ("an4", "speechocean762", "ljspeech32", "kathleen_arctic16k", "read_english_misc")


def is_scheme(numbers):
    return numbers.startswith("int8")


def marks(numbers):
    """Where a page keeps the table of a dtype or scheme."""
    name = "table" if numbers == "float32" else f"{numbers} table"
    return f"<!-- {name} -->", f"<!-- end of {name} -->"


def default_weights():
    cache = os.environ.get("OASR_CACHE_DIR", Path.home() / ".cache" / "oasr")
    return Path(os.environ.get("OASR_TEST_WEIGHTS", Path(cache) / "test-weights"))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["base", "tiny.en"])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--limit", type=int, default=0, help="utterances of a set (0: all)")
    parser.add_argument("--dtype", default="float32", help="float32, or a scheme (int8_w8a8)")
    parser.add_argument("--container", default="ct2", help="ct2, hf")
    parser.add_argument("--threads", type=int, default=0, help="0: what the quota allows")
    parser.add_argument("--weights", type=Path, default=default_weights())
    parser.add_argument("--data", type=Path,
                        default=Path(os.environ.get("OASR_TEST_DATA", ROOT.parent / "shared")))
    parser.add_argument("--worker", type=Path, help="oasr_peer_worker (default: it is built)")
    parser.add_argument("--write", type=Path, help="a page with the marks of the table")
    parser.add_argument("--differences", type=Path, help="write the utterances that differ here")
    args = parser.parse_args()
    args.worker = args.worker and args.worker.resolve()
    return args


def ensure_worker():
    subprocess.run(["cmake", "--build", "--preset", "release", "--target", "oasr_peer_worker"],
                   cwd=ROOT, check=True, stdout=sys.stderr)
    return ROOT / "build" / "release" / "bench" / "peers" / "oasr_peer_worker"


def utterances(args, model, name):
    """The reference transcripts of a set that are English and have a text to compare with."""
    path = args.data / "goldens" / "whisper_real" / model / f"{name}.jsonl"
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    rows = [r for r in rows if r["language"] == "en" and r["reference"] and r["duration"] <= 30]
    return rows[:args.limit or None]


class Worker:
    """oasr with a model loaded; see bench/peers/oasr_worker.cc."""

    def __init__(self, args, model):
        self.process = subprocess.Popen(
            [args.worker, args.weights / model / args.container, args.dtype, str(args.threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.reply()

    def reply(self):
        answer = json.loads(self.process.stdout.readline() or '{"error": "the worker ended"}')
        if "error" in answer:
            sys.exit(f"oasr: {answer['error']}")
        return answer

    def transcribe(self, path):
        job = {"audio": str(path), "timestamps": False, "single_window": True}
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return self.reply()["text"].strip()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Sums:
    """Errors of the reference and of oasr on the same utterances."""

    def __init__(self):
        self.words, self.letters = [Errors(), Errors()], [Errors(), Errors()]
        self.same = self.count = 0

    def add(self, reference, texts, normalize):
        for i, text in enumerate(texts):
            self.words[i] += word_errors(reference, text, normalize)
            self.letters[i] += joined_character_errors(reference, text, normalize)
        self.same += texts[0] == texts[1]
        self.count += 1

    def row(self, model, name, numbers):
        difference = f"{self.words[1].percent - self.words[0].percent:+.2f}"
        cells = [model, name, str(self.count), str(self.words[0].length),
                 *(f"{e.percent:.2f}" for e in self.words),
                 *([difference] if is_scheme(numbers) else []),
                 *(f"{e.percent:.2f}" if name == "an4" else "" for e in self.letters),
                 f"{self.same} of {self.count}"]
        return "| " + " | ".join(cells) + " |"


def head(numbers):
    first, second = ("full precision", "int8") if is_scheme(numbers) else ("reference", "oasr")
    cells = ["model", "set", "utterances", "words", f"WER %, {first}", f"WER %, {second}",
             *(["difference"] if is_scheme(numbers) else []), f"joined CER %, {first}",
             f"joined CER %, {second}", "identical texts"]
    return ["| " + " | ".join(cells) + " |", "|" + "---|" * len(cells)]


def score_model(args, model, normalize):
    """The rows of a model, and the utterances whose texts differ."""
    worker, total, lines, differing = Worker(args, model), Sums(), [], []
    for name in args.sets:
        sums = Sums()
        for row in utterances(args, model, name):
            theirs = row["greedy"]["text"].strip()
            ours = worker.transcribe(args.data / "data" / row["key"])
            for each in (sums, total):
                each.add(row["reference"], (theirs, ours), normalize)
            if ours != theirs:
                differing.append({"model": model, "key": row["key"], "oasr": ours,
                                  "reference": theirs, "avg_logprob": row["greedy"]["avg_logprob"]})
        lines.append(sums.row(model, name, args.dtype))
        print(lines[-1], file=sys.stderr)
    worker.close()
    if is_scheme(args.dtype):
        lines.append(total.row(model, "all", args.dtype))
    return lines, differing


def main():
    args = parse_arguments()
    args.worker = args.worker or ensure_worker()
    normalize = english_normalizer()
    lines, differing = head(args.dtype), []
    for model in args.models:
        rows, different = score_model(args, model, normalize)
        lines += rows
        differing += different
    table = "\n".join(lines)
    print(table)
    if args.differences:
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in differing)
        args.differences.write_text(text, encoding="utf-8")
    if args.write:
        begin, end = marks(args.dtype)
        before, rest = args.write.read_text(encoding="utf-8").split(begin)
        after = rest.split(end)[1]
        args.write.write_text(f"{before}{begin}\n{table}\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
