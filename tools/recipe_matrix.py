#!/usr/bin/env python3
"""Writes test models by every int8 recipe and choice of layers, and serves each from its folder without an option.

    tools/recipe_matrix.py FOLDER [--oasr PROGRAM] [--models tiny.en,base,u2pp] [--utterances 8]

For every model, recipe and --module-types: `oasr quantize` with few recordings (of one model they are decoded once),
`oasr inspect --quantization`, whose layers have to be those of the report; `oasr transcribe` of a held recording and
`oasr eval` of more. What the product refuses has to be what REFUSED says. FOLDER gets the models, with their
reports, and table.md; status 1 if anything is not as it should be. Needs OASR_TEST_WEIGHTS and OASR_TEST_DATA.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import recipe_models

RECIPES = ("int8_w8a8_rtn", "smoothquant_w8a8", "smoothquant_w8a8_fused")
DEFAULT = "linear,pointwise_conv"
KINDS = (DEFAULT, DEFAULT + ",conv1d", DEFAULT + ",conv2d", "all", "conv1d", "conv2d")
HELD = 8
# Kinds of which the model has no layer that could be quantized.
REFUSED = {("tiny.en", "conv2d"), ("base", "conv2d"), ("u2pp", "conv1d")}
SKIPPED = 77  # status: the weights are not there


class Failure(Exception):
    pass


def call(command, expected=0):
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if ran.returncode != expected:
        raise Failure(f"status {ran.returncode}, not {expected}: {' '.join(map(str, command))}\n{ran.stderr}")
    return ran


def held_manifest(model, folder):
    """A few held recordings, evenly strided over all sets."""
    _, rows = recipe_models.splits(model)
    rows = [rows[i * len(rows) // HELD] for i in range(HELD)]
    path = folder / f"{model}-few.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path, rows


def words_heard(oasr, model, manifest):
    """Word errors and words of the references."""
    said = call([oasr, "eval", model, "--manifest", manifest, "--normalizer", "basic", "--json", "--quiet"])
    counts = json.loads(said.stdout)["total"]["words"]
    return counts["substitutions"] + counts["deletions"] + counts["insertions"], counts["reference"]


def served(oasr, folder, rows, manifest):
    """Serves a written folder: the schemes of its layers, a text, and its word errors."""
    report = json.loads((folder / "quantization_report.json").read_text(encoding="utf-8"))
    written = {layer["path"]: layer["scheme"] for layer in report["layers"] if layer["scheme"]}
    said = json.loads(call([oasr, "inspect", folder, "--quantization", "--json"]).stdout)["quantization"]
    found = {layer["path"]: layer["scheme"] for layer in said["layers"] if layer["scheme"]}
    if found != written:
        raise Failure(f"{folder}: served layers are not those of the report")
    if said["reference_layers"] != 0 or not (folder / "quantization_report.html").exists():
        raise Failure(f"{folder}: layers on reference loops, or no page")
    text = call([oasr, "transcribe", "--model", folder, rows[0]["audio"], "--quiet"]).stdout.strip()
    errors, words = words_heard(oasr, folder, manifest)
    if not text or 2 * errors > words:
        raise Failure(f"{folder}: heard '{text}', {errors} of {words} words wrong")
    return Counter(written.values()), text, errors


def rows_of_model(args, model):
    source = recipe_models.source_of(model)
    calibration, _ = recipe_models.write_manifests(model, args.folder)
    manifest, rows = held_manifest(model, args.folder)
    full, words = words_heard(args.oasr, source, manifest)
    text = call([args.oasr, "transcribe", "--model", source, rows[0]["audio"], "--quiet"]).stdout.strip()
    yield f"| {model} | full precision | | | {full} of {words} | {text} |"
    for recipe in RECIPES:
        for kinds in KINDS:
            name = f"{model}-{recipe}-{kinds.replace(DEFAULT, 'default').replace(',', '+')}"
            command = [args.oasr, "quantize", source, args.folder / name, "--recipe", recipe, "--module-types", kinds,
                       "--calib-manifest", calibration, "--calib-utterances", args.utterances, "--force", "--statistics",
                       args.folder / f"{model}.calibration"]
            shown = kinds.replace(DEFAULT, "default").replace(",", " + ")
            if (model, kinds) in REFUSED:
                message = call(command, expected=2).stderr.strip().splitlines()[-1]
                yield f"| {model} | {recipe} | {shown} | refused | | {message.removeprefix('oasr: error: ')} |"
                continue
            call(command)
            schemes, text, errors = served(args.oasr, args.folder / name, rows, manifest)
            layers = ", ".join(f"{count} {scheme}" for scheme, count in sorted(schemes.items()))
            yield f"| {model} | {recipe} | {shown} | {layers} | {errors} of {words} | {text} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--oasr", default=str(recipe_models.ROOT / "build" / "release" / "oasr"))
    parser.add_argument("--models", default="tiny.en,base,u2pp")
    parser.add_argument("--utterances", type=int, default=8)
    args = parser.parse_args()
    models = args.models.split(",")
    missing = [str(recipe_models.source_of(m)) for m in models if not recipe_models.source_of(m).exists()]
    if missing:
        print("skipped: not there:", ", ".join(missing))
        sys.exit(SKIPPED)
    args.folder.mkdir(parents=True, exist_ok=True)
    table = ["| model | recipe | layers | written and served | word errors | heard |", "|---|---|---|---|---|---|"]
    status = 0
    for model in models:
        try:
            for row in rows_of_model(args, model):
                table.append(row)
                print(row, flush=True)
        except Failure as failure:
            print(failure, file=sys.stderr)
            status = 1
    (args.folder / "table.md").write_text("\n".join(table) + "\n", encoding="utf-8")
    sys.exit(status)


if __name__ == "__main__":
    main()
