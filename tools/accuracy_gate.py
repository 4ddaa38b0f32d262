#!/usr/bin/env python3
"""Runs the gates of ci/accuracy.json and compares their word error with what is expected.

    tools/accuracy_gate.py [--oasr PROGRAM] [--quick] [--update] [--results DIR] [name…]

A gate is a command of `oasr eval`, in which {weights} is OASR_TEST_WEIGHTS (as scripts/get_test_weights.sh
fills it), {data} OASR_TEST_DATA (else ../shared) and {made} the folder of tools/recipe_models.py, which is run first for a
gate with "recipe": [model, recipe], and for each set the words, substitutions, deletions,
insertions and character error that it gave. A rate may be off by `tolerance` points; a reference of
another length is always an error. A gate whose weights or data are not there is skipped, visibly: status 1
if one fails, 2 if none ran. --update writes what was measured into the file.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import recipe_models

ROOT = Path(__file__).resolve().parent.parent
COUNTS = ("reference", "substitutions", "deletions", "insertions")


def folders():
    cache = Path(os.environ.get("OASR_CACHE_DIR", Path.home() / ".cache" / "oasr"))
    return {"weights": os.environ.get("OASR_TEST_WEIGHTS", str(cache / "test-weights")),
            "data": os.environ.get("OASR_TEST_DATA", str(ROOT.parent / "shared"))}


def command_of(gate, places, output):
    """The words of the command, and the first path of it that is not there."""
    if "recipe" in gate and not recipe_models.source_of(gate["recipe"][0]).exists():
        return [], recipe_models.source_of(gate["recipe"][0])
    words = [word.format(**places) for word in gate["command"]]
    paths = [word for word, given in zip(words, gate["command"]) if "{" in given]
    missing = next((path for path in paths if not Path(path).exists()), None)
    return [*words, "--output", str(output), "--quiet", "--json"], missing


def measure(oasr, words, output):
    """Set -> its row of the result."""
    run = subprocess.run([oasr, "eval", *words], stdout=subprocess.DEVNULL, check=False)
    if run.returncode != 0:
        return None
    return {row["name"]: row for row in json.loads(output.read_text(encoding="utf-8"))["sets"]}


def measured(row):
    words = row["words"]
    return {**{key: words[key] for key in COUNTS}, "wer": round(words["percent"], 4),
            "cer": round(row["characters"]["percent"], 4)}


def complaints(gate, rows):
    if not gate["expect"]:
        yield "nothing is expected of it: --update writes what was measured"
    for name, wanted in gate["expect"].items():
        if name not in rows:
            yield f"set {name} is not in the result"
            continue
        got = measured(rows[name])
        if got["reference"] != wanted["reference"]:
            yield f"{name}: {got['reference']} reference words, not {wanted['reference']}"
        for rate in ("wer", "cer"):
            if abs(got[rate] - wanted[rate]) > gate["tolerance"] + 5e-5:  # of the rounding to 4 places
                yield f"{name}: {rate} {got[rate]}, expected {wanted[rate]} ± {gate['tolerance']}"
        if gate["tolerance"] == 0 and got != wanted:
            yield f"{name}: {got}, expected {wanted}"


def run_gate(args, gate, folder):
    """ok, failed or skipped."""
    output = folder / f"{gate['name']}.json"
    made = folder / "made"
    if "recipe" in gate and recipe_models.source_of(gate["recipe"][0]).exists():
        recipe_models.quantize(args.oasr, *gate["recipe"], made)
    words, missing = command_of(gate, {**folders(), "made": str(made)}, output)
    if missing:
        print(f"skipped  {gate['name']}: {missing} is not there")
        return "skipped"
    rows = measure(args.oasr, words, output)
    if rows is None:
        print(f"failed   {gate['name']}: oasr eval {' '.join(words)}")
        return "failed"
    if args.update:
        gate["expect"] = {name: measured(row) for name, row in rows.items()}
    found = list(complaints(gate, rows))
    rates = ", ".join(f"{name} {row['words']['percent']:.2f} %" for name, row in rows.items())
    print(f"{'failed ' if found else 'ok     '}  {gate['name']}: {rates}", flush=True)
    for line in found:
        print(f"         {line}")
    return "failed" if found else "ok"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--oasr", default=str(ROOT / "build" / "release" / "oasr"))
    parser.add_argument("--gates", type=Path, default=ROOT / "ci" / "accuracy.json")
    parser.add_argument("--quick", action="store_true", help="only gates that are marked so")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--results", type=Path, help="keep the results here; a stopped run goes on from them")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    file = json.loads(args.gates.read_text(encoding="utf-8"))
    gates = [g for g in file["gates"] if (not args.names or g["name"] in args.names)
             and (not args.quick or g.get("quick"))]
    unknown = set(args.names) - {g["name"] for g in file["gates"]}
    if unknown or not gates:
        sys.exit(f"there is no gate {', '.join(sorted(unknown)) or 'to run'}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.results or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        results = [run_gate(args, gate, folder) for gate in gates]
    if args.update:
        args.gates.write_text(json.dumps(file, indent=1) + "\n", encoding="utf-8")
    print(", ".join(f"{results.count(kind)} {kind}" for kind in ("ok", "failed", "skipped")))
    sys.exit(1 if "failed" in results else 0 if "ok" in results else 2)


if __name__ == "__main__":
    main()
