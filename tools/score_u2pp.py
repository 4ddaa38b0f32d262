#!/usr/bin/env python3
"""Word error of oasr with the trained U2++ (models/u2pp_en) beside WeNet's own decodes, set by set and mode by mode.

    tools/score_u2pp.py [--sets an4 …] [--contexts full chunk16] [--quantization int8_w8a8] [--write docs/accuracy.md]

Needs the full test data (OASR_TEST_DATA, else ../shared), which holds the model and the reference decodes, and
build/release/oasr. Words are compared in upper case without punctuation. --write puts the table between the marks of
the page; with --quantization the marks are those of the scheme. --differences lists the texts that differ.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from word_error import Errors, align

ROOT = Path(__file__).resolve().parent.parent
SETS = ("an4", "speechocean762", "kathleen_arctic16k", "ljspeech32", "read_english_misc", "fsdd", "azure_customspeech")
MODES = ("ctc_greedy_search", "ctc_prefix_beam_search", "attention_rescoring")


def words(text):
    return re.sub(r"[^\w' ]", " ", text.upper()).split()


def errors(pairs):
    total = Errors()
    for reference, text in pairs:
        total = total + align(words(reference), words(text))
    return total


def audio_of(data, name, line):
    folder = data / "data" / name
    if "audio" in line:
        return folder / line["audio"]
    places = [folder / "audio" / "test" / f"{line['id']}.wav", folder / "audio" / f"{line['id']}.wav"]
    return next((place for place in places if place.exists()), places[-1])


def transcribe(args, name, lines, mode, context):
    """The texts, in order."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "manifest.jsonl"
        rows = [json.dumps({"audio": str(audio_of(args.data, name, line)), "id": str(i)}) for i, line in enumerate(lines)]
        manifest.write_text("\n".join(rows) + "\n", encoding="utf-8")
        command = [str(args.oasr), "transcribe", "--model", str(args.data / "models" / "u2pp_en"), "--manifest",
                   str(manifest), "--output-format", "json", "--decode", mode, "--batch-size", "8", "--quiet"]
        command += ["--quantization", args.quantization] if args.quantization else ["--dtype", "float32"]
        if context == "chunk16":
            command += ["--chunk-size", "16"]
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if run.returncode not in (0, 6):  # 6: some recording has no text
            sys.exit(f"{' '.join(command)}: status {run.returncode}")
        results = [json.loads(run.stdout)] if len(lines) == 1 else [json.loads(row) for row in run.stdout.splitlines()]
    return [result["text"] for result in results]


def score(args, name, mode, context):
    path = args.data / "goldens" / "u2pp_real" / f"{name}.{context}.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    texts = transcribe(args, name, lines, mode, context)
    both = list(zip(lines, texts, strict=True))
    reference = errors((line["ref"], line[mode]["text"]) for line, _ in both if line.get("ref"))
    here = errors((line["ref"], text) for line, text in both if line.get("ref"))
    same = [line for line, text in both if text == line[mode]["text"]]
    for line, text in both:
        if args.differences and text != line[mode]["text"]:
            print(json.dumps({"set": name, "context": context, "mode": mode, "id": line["id"],
                              "reference": line[mode]["text"], "oasr": text}), file=args.differences)
    return (f"| {name} | {context} | {mode} | {reference.length} | {reference.percent:.2f} | {here.percent:.2f} | "
            f"{here.percent - reference.percent:+.2f} | {len(same)} of {len(lines)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--contexts", nargs="+", choices=("full", "chunk16"), default=["full", "chunk16"])
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--quantization", default="")
    parser.add_argument("--oasr", type=Path, default=ROOT / "build" / "release" / "oasr")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("OASR_TEST_DATA", ROOT.parent / "shared")))
    parser.add_argument("--write", type=Path)
    parser.add_argument("--differences", type=argparse.FileType("w"))
    args = parser.parse_args()
    table = ["| set | context | mode | words | WER %, WeNet | WER %, oasr | difference | identical texts |",
             "|---|---|---|---|---|---|---|---|"]
    for name in args.sets:
        for context in args.contexts:
            for mode in args.modes:
                table.append(score(args, name, mode, context))
                print(table[-1], flush=True)
    if args.write:
        mark = f"u2pp {args.quantization or 'float32'} table"
        page = args.write.read_text(encoding="utf-8")
        begin, end = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
        if begin not in page or end not in page:
            sys.exit(f"{args.write} has no marks {begin} and {end}")
        head, rest = page.split(begin, 1)
        tail = rest.split(end, 1)[1]
        args.write.write_text("\n".join([f"{head}{begin}", *table, f"{end}{tail}"]), encoding="utf-8")


if __name__ == "__main__":
    main()
