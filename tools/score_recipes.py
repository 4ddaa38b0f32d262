#!/usr/bin/env python3
"""Word error of every recipe of `oasr quantize` beside full precision, on audio that calibration did not hear.

    tools/score_recipes.py [--models base tiny.en u2pp] [--recipes …] [--folder DIR] [--write docs/accuracy.md]

Models, recipes and sets are those of tools/recipe_models.py. Both sides are `oasr eval`: Whisper greedy, one window, one
temperature, no timestamps, its English normalizer; the U2++ with attention rescoring offline and in chunks of 16.
Intervals are paired bootstraps of `oasr eval --compare`. --folder keeps models and results.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from recipe_models import MODELS, RECIPES, ROOT, is_recipe, quantize, source_of, write_manifests

WHISPER = ["-l", "en", "--single-window", "--no-timestamps", "--no-fallback", "--normalizer", "whisper-english"]
MODES = {"base": {"": WHISPER}, "tiny.en": {"": WHISPER},
         "u2pp": {"offline": ["--normalizer", "basic"], "chunks of 16": ["--normalizer", "basic", "--chunk-size", "16"]}}
HEAD = ("| model | mode | set | words | WER %, full precision | recipe | WER % | difference [95 %] | other texts |\n"
        "|---|---|---|---|---|---|---|---|---|\n")


def evaluate(oasr, model, manifest, options, output):
    if not output.exists():
        subprocess.run([oasr, "eval", str(model), "--manifest", str(manifest), "--output", str(output), "--quiet", *options],
                       check=True, stdout=subprocess.DEVNULL)
    return output


def compare(oasr, full, quantized):
    run = subprocess.run([oasr, "eval", "--compare", str(full), str(quantized), "--json"], check=True, capture_output=True,
                         text=True)
    return json.loads(run.stdout)


def rate(counts):
    return 100 * (counts["substitutions"] + counts["deletions"] + counts["insertions"]) / counts["reference"]


def rows(oasr, model, recipes, folder):
    _, held = write_manifests(model, folder)
    for mode, options in MODES[model].items():
        name = mode.replace(" ", "_") or "greedy"
        full = evaluate(oasr, source_of(model), held, options, folder / f"{model}-full-{name}.json")
        for recipe in ("online", *recipes):
            extra = ["--quantization", "int8_w8a8"] if recipe == "online" else []
            made = source_of(model) if recipe == "online" else quantize(oasr, model, recipe, folder)
            result = evaluate(oasr, made, held, options + extra, folder / f"{model}-{recipe}-{name}.json")
            comparison = compare(oasr, full, result)
            changed = len(comparison["changes"])
            for group in comparison["groups"]:
                difference = f"{group['difference']:+.2f} [{group['low']:+.2f}, {group['high']:+.2f}]"
                yield (f"| {model} | {mode} | {group['name']} | {group['a']['reference']} | {rate(group['a']):.2f} | {recipe} "
                       f"| {rate(group['b']):.2f} | {difference} | {changed if group['name'] == 'all' else ''} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--recipes", nargs="+", type=is_recipe, default=RECIPES)
    parser.add_argument("--oasr", default=str(ROOT / "build" / "release" / "oasr"))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--write", type=Path, help="a page with <!-- recipes table --> marks")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        lines = []
        for model in args.models:
            for line in rows(args.oasr, model, args.recipes, folder):
                print(line, flush=True)
                lines.append(line)
    table = HEAD + "\n".join(lines) + "\n"
    if args.write:
        text = args.write.read_text(encoding="utf-8")
        text, count = re.subn(r"(<!-- recipes table -->\n).*?(<!-- end of recipes table -->)", lambda m: m[1] + table + m[2],
                              text, flags=re.S)
        if count != 1:
            sys.exit(f"{args.write} has no marks for the table")
        args.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
