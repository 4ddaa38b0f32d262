#!/usr/bin/env python3
"""Quantizes a test model by a recipe, on calibration audio that the held sets do not have.

    tools/recipe_models.py MODEL RECIPE FOLDER [--oasr PROGRAM]

MODEL is base, tiny.en or u2pp; RECIPE one of oasr's, or RECIPE+PART with a part of VARIANTS. Writes
FOLDER/<model>-<recipe> (what is there is kept), the manifests FOLDER/<model>-calibration.jsonl and <model>-held.jsonl,
and the statistics. Whisper is calibrated on every second recording of speechocean762 and of the 16 kHz files of
read_english_misc, and held against the others, AN4 and ARCTIC; the U2++, trained on AN4, on every fourth recording of
AN4's test set and held against the others. Needs OASR_TEST_WEIGHTS and OASR_TEST_DATA (else ../shared).
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECIPES = ("int8_w8a8_rtn", "smoothquant_w8a8", "smoothquant_w8a8_fused", "w4a8_g128_rtn", "w4a8_chn_rtn",
           "w4a8_g128_smooth")
# What may be added to a recipe: convolutions, an algorithm that no recipe runs by itself, or an option
# (mixed.limit=1).
VARIANTS = ("conv", "clip_search", "bias_correction")
MODELS = ("base", "tiny.en", "u2pp")
RATE = 16000  # Hz, of all models


def data_folder():
    return Path(os.environ.get("OASR_TEST_DATA", ROOT.parent / "shared"))


def source_of(model):
    """The full-precision checkpoint."""
    if model == "u2pp":
        return data_folder() / "models" / "u2pp_en"
    cache = Path(os.environ.get("OASR_CACHE_DIR", Path.home() / ".cache" / "oasr"))
    weights = Path(os.environ.get("OASR_TEST_WEIGHTS", cache / "test-weights"))
    return weights / model / f"{model}.pt"


def rows_of(name):
    """Rows of a set at 16 kHz, with absolute paths and ids that name the set."""
    folder = data_folder() / "data" / name
    rows, seen = [], set()
    for line in (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        audio = row.get("audio") or row.get("audio_filepath")
        if row.get("sample_rate") != RATE or audio in seen or row["id"] in seen:
            continue
        seen |= {audio, row["id"]}
        rows.append({"id": f"{name}-{row['id']}", "set": name, "audio": str((folder / audio).resolve()),
                     "text": row.get("text", ""), "speaker": row.get("speaker", "")})
    return rows


def splits(model):
    """Calibration rows and held rows."""
    if model == "u2pp":
        rows = rows_of("an4")
        return rows[::4], [row for i, row in enumerate(rows) if i % 4]
    rows = rows_of("speechocean762") + rows_of("read_english_misc")
    return rows[::2], rows[1::2] + rows_of("an4") + rows_of("kathleen_arctic16k")


def write_manifests(model, folder):
    paths = []
    for name, rows in zip(("calibration", "held"), splits(model)):
        path = folder / f"{model}-{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        paths.append(path)
    return paths


def recipe_arguments(recipe, folder):
    """Of `oasr quantize`."""
    name, _, variant = recipe.partition("+")
    if "=" in variant:
        return ["--recipe", name, "--option", variant]
    if not variant or variant == "conv":
        return ["--recipe", name] + (["--module-types", "linear,pointwise_conv,conv"] if variant else [])
    algorithms = {"smoothquant_w8a8": ["smoothquant", variant, "rtn"], "int8_w8a8_rtn": [variant, "rtn"]}[name]
    path = folder / f"{recipe}.yaml"
    path.write_text(json.dumps({"name": recipe, "scheme": "int8_w8a8", "algorithms": algorithms}), encoding="utf-8")
    return ["--recipe", str(path)]


def is_recipe(text):
    name, plus, variant = text.partition("+")
    if name not in RECIPES or (plus and variant not in VARIANTS and "=" not in variant):
        raise argparse.ArgumentTypeError(f"'{text}' is not one of {', '.join(RECIPES)}, with +{', +'.join(VARIANTS)}")
    return text


def quantize(oasr, model, recipe, folder):
    """The folder of the quantized model; made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    calibration, _ = write_manifests(model, folder)
    made = folder / f"{model}-{recipe}"
    if made.exists():
        return made
    # One destination for all recipes of a model, so that they share the statistics.
    work = folder / model
    command = [oasr, "quantize", str(source_of(model)), str(work), *recipe_arguments(recipe, folder), "--calib-manifest",
               str(calibration), "--calib-utterances", "64", "--force", "--quiet", "--json"]
    if model != "u2pp":
        command += ["-l", "en"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    work.rename(made)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("recipe", type=is_recipe)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--oasr", default=str(ROOT / "build" / "release" / "oasr"))
    args = parser.parse_args()
    if not source_of(args.model).exists():
        sys.exit(f"{source_of(args.model)} is not there")
    print(quantize(args.oasr, args.model, args.recipe, args.folder))


if __name__ == "__main__":
    main()
