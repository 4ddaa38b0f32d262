#!/usr/bin/env python3
"""Word error of every recipe of `oasr quantize` beside full precision, on audio that calibration did not hear.

    tools/score_recipes.py [--models base tiny.en u2pp] [--recipes …] [--folder DIR] [--write docs/accuracy.md]

Models, recipes and sets are those of tools/recipe_models.py. Both sides are `oasr eval`: Whisper greedy, one window, one
temperature, no timestamps, its English normalizer; the U2++ with attention rescoring offline and in chunks of 16.
Intervals are paired bootstraps of `oasr eval --compare`; MB are of all weights, nats the divergence that the report has.
--folder keeps models and results.
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
HEAD = ("| model | mode | recipe | MB | nats | WER % | difference [95 %] | by set | other texts |\n"
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


def report_of(made):
    """Megabytes of all weights, and the divergence from full precision, of a quantized folder."""
    report = json.loads((made / "quantization_report.json").read_text(encoding="utf-8"))
    nats = report.get("divergence")
    return f"{report['bytes_after'] / 1e6:.1f}", "" if nats is None else f"{nats:.4f}"


def by_set(groups, text):
    """Of the sets, which come after the group of all and before those of lengths."""
    sets = [g for g in groups if not re.fullmatch(r"all|[\d-]+\+? s", g["name"])]
    return ", ".join(f"{g['name']} {text(g)}" for g in sets) if len(sets) > 1 else ""


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
            groups = comparison["groups"]
            every = next(g for g in groups if g["name"] == "all")
            if recipe == "online":
                yield (f"| {model} | {mode} | full precision, {every['a']['reference']} words | | | {rate(every['a']):.2f} | "
                       f"| {by_set(groups, lambda g: format(rate(g['a']), '.2f'))} | |")
            megabytes, nats = ("", "") if recipe == "online" else report_of(made)
            yield (f"| {model} | {mode} | {recipe} | {megabytes} | {nats} | {rate(every['b']):.2f} | {every['difference']:+.2f} "
                   f"[{every['low']:+.2f}, {every['high']:+.2f}] "
                   f"| {by_set(groups, lambda g: format(g['difference'], '+.2f'))} | {len(comparison['changes'])} |")


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
