#!/usr/bin/env python3
"""Word error of oasr beside the reference implementation's, on the same utterances.

    tools/score.py [--models base tiny.en] [--sets an4 …] [--limit N] [--write docs/accuracy.md]

Needs the full test data (OASR_TEST_DATA, else ../shared), which holds the reference transcripts, the
weights of scripts/get_test_weights.sh, and build/release with its target oasr_peer_worker (which is
built). Run it with a Python that has openai-whisper's normalizer (build/peers-venv/bin/python).

English, greedy, no timestamps, the reference's path for clips of 30 s or less. Both sides are scored
by Whisper's English normalizer on the utterances that have a reference transcript. AN4 spells
letters, which Whisper joins, so it is scored by characters without spaces as well. --write puts the
table between the marks of the page.
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
MARKS = ("<!-- table -->", "<!-- end of table -->")


def default_weights():
    cache = os.environ.get("OASR_CACHE_DIR", Path.home() / ".cache" / "oasr")
    return Path(os.environ.get("OASR_TEST_WEIGHTS", Path(cache) / "test-weights"))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["base", "tiny.en"])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--limit", type=int, default=0, help="utterances of a set (0: all)")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--container", default="ct2", help="ct2, hf")
    parser.add_argument("--threads", type=int, default=0, help="0: what the quota allows")
    parser.add_argument("--weights", type=Path, default=default_weights())
    parser.add_argument("--data", type=Path,
                        default=Path(os.environ.get("OASR_TEST_DATA", ROOT.parent / "shared")))
    parser.add_argument("--worker", type=Path, help="oasr_peer_worker (default: it is built)")
    parser.add_argument("--write", type=Path, help="a page with the marks of the table")
    parser.add_argument("--differences", type=Path, help="write the utterances that differ here")
    return parser.parse_args()


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


def score_set(args, worker, model, name, normalize):
    """One row of the table, and the utterances whose texts differ."""
    sums, same, differing = [Errors() for _ in range(4)], 0, []
    rows = utterances(args, model, name)
    for row in rows:
        theirs = row["greedy"]["text"].strip()
        ours = worker.transcribe(args.data / "data" / row["key"])
        same += ours == theirs
        if ours != theirs:
            differing.append({"model": model, "key": row["key"], "oasr": ours, "reference": theirs,
                              "avg_logprob": row["greedy"]["avg_logprob"]})
        for i, text in enumerate((theirs, ours)):
            sums[i] += word_errors(row["reference"], text, normalize)
            sums[2 + i] += joined_character_errors(row["reference"], text, normalize)
    letters = [f"{e.percent:.2f}" if name == "an4" else "" for e in sums[2:]]
    cells = [model, name, str(len(rows)), str(sums[0].length), f"{sums[0].percent:.2f}",
             f"{sums[1].percent:.2f}", *letters, f"{same} of {len(rows)}"]
    return "| " + " | ".join(cells) + " |", differing


def main():
    args = parse_arguments()
    args.worker = args.worker or ensure_worker()
    normalize = english_normalizer()
    lines = ["| model | set | utterances | words | WER %, reference | WER %, oasr | joined CER %, "
             "reference | joined CER %, oasr | identical texts |", "|" + "---|" * 9]
    differing = []
    for model in args.models:
        worker = Worker(args, model)
        for name in args.sets:
            line, rows = score_set(args, worker, model, name, normalize)
            lines.append(line)
            differing += rows
            print(line, file=sys.stderr)
        worker.close()
    table = "\n".join(lines)
    print(table)
    if args.differences:
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in differing)
        args.differences.write_text(text, encoding="utf-8")
    if args.write:
        before, rest = args.write.read_text(encoding="utf-8").split(MARKS[0])
        after = rest.split(MARKS[1])[1]
        args.write.write_text(f"{before}{MARKS[0]}\n{table}\n{MARKS[1]}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
