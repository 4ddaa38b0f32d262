#!/usr/bin/env python3
"""Word error of quantized models with less chance in it: every held recording is decoded several times, shifted.

    tools/score_shifts.py --prepare tiny.en --shifts 4 --folder F [--recipes int8_w8a8_rtn …]    # prints commands
    (run them, here or elsewhere)
    tools/score_shifts.py --summarize F/tiny.en-full-greedy-x4.json F/tiny.en-int8_w8a8_rtn-greedy-x4.json …

A greedy decoder takes one of two nearly equal tokens by a rounding, and a flipped token may cost five words or none: on
1508 words two models that are equally good differ by points. Silence before a recording changes nothing that a listener
hears, and all the roundings. Copy k = 0 … N - 1 of a recording has k · D ms of it (7 ms: no multiple of the 10 ms from
frame to frame, so that frames see other samples), so the same words are decoded N times.

--prepare writes the copies as 16-bit WAV at the recording's rate to F/shifted, the manifest F/<model>-held-x<N>.jsonl,
and prints the commands that make the models and decode (plain `oasr quantize` through tools/recipe_models.py, and
`oasr eval`). Only files of 16-bit PCM WAV can be shifted; the others are left out of both sides, and counted.

--summarize compares score files with the first of them. The difference is that of all errors of all copies over all
words of all copies. Its interval is a paired bootstrap over utterances, in which the copies of an utterance are drawn
together, as one: they are the same words by the same voice, not N independent utterances, and drawing them apart would
make the interval too narrow by up to the root of N. What the copies take away is the chance of roundings within an
utterance; the chance of which utterances the set has stays. "one copy" is the standard deviation of the difference
from copy to copy, in points: how far a single decode is a lottery.
"""

import argparse
import json
import random
import shlex
import statistics
import sys
import wave
from pathlib import Path

from recipe_models import MODELS, RECIPES, ROOT, is_recipe, source_of, splits
from score_recipes import MODES

SEPARATOR = "~"  # between the id of an utterance and the number of the copy
RESAMPLES = 10000
SEED = 1
HEAD = ("| file | WER % | difference [95 %] | p | one copy | by set [95 %] | other texts |\n"
        "|---|---|---|---|---|---|---|")


def shift(source, target, milliseconds):
    """Writes the recording with silence before it. False for a file that is no 16-bit PCM WAV."""
    try:
        with wave.open(str(source), "rb") as file:
            parameters = file.getparams()
            samples = file.readframes(parameters.nframes)
    except (wave.Error, EOFError):
        return False
    if parameters.sampwidth != 2:
        return False
    frames = round(milliseconds * parameters.framerate / 1000)
    with wave.open(str(target), "wb") as file:
        file.setparams(parameters)
        file.writeframes(bytes(2 * parameters.nchannels * frames) + samples)
    return True


def prepare(model, shifts, delay, folder):
    """Audio and manifest of the copies; the manifest's path and how many recordings can not be shifted."""
    audio = folder / "shifted"
    audio.mkdir(parents=True, exist_ok=True)
    lines, left_out = [], 0
    for row in splits(model)[1]:
        for copy in range(shifts):
            name = f"{row['id']}{SEPARATOR}{copy}"
            target = audio / (name.replace("/", "_") + ".wav")
            if not shift(row["audio"], target, copy * delay):
                left_out += 1
                break
            lines.append(json.dumps({**row, "id": name, "audio": str(target.resolve())}) + "\n")
    manifest = folder / f"{model}-held-x{shifts}.jsonl"
    manifest.write_text("".join(lines), encoding="utf-8")
    return manifest, left_out


def commands(model, recipes, manifest, folder, oasr):
    """Shell commands: a model a recipe, and a score file a model and mode."""
    suffix = manifest.stem.rpartition("-")[2]
    for recipe in recipes:
        yield [sys.executable, str(Path(__file__).parent / "recipe_models.py"), model, recipe, str(folder), "--oasr", oasr]
    for mode, options in MODES[model].items():
        name = mode.replace(" ", "_") or "greedy"
        for subject in ("full", *recipes):
            made = source_of(model) if subject == "full" else folder / f"{model}-{subject}"
            yield [oasr, "eval", str(made), "--manifest", str(manifest), "--output",
                   str(folder / f"{model}-{subject}-{name}-{suffix}.json"), "--quiet", *options]


def read_scores(path):
    """{utterance: {copy: (errors, words, text)}} of a score file."""
    scores = {}
    for row in json.loads(Path(path).read_text(encoding="utf-8"))["utterances"]:
        utterance, _, copy = row["id"].rpartition(SEPARATOR)
        counts = row["words"]
        errors = counts["substitutions"] + counts["deletions"] + counts["insertions"]
        scores.setdefault((row.get("set", ""), utterance), {})[copy] = (errors, counts["reference"], row.get("hypothesis", ""))
    return scores


def bootstrap(pairs):
    """95 % interval and two-sided p of the difference in points; pairs of (more errors, words), one an utterance."""
    draw = random.Random(SEED)
    found = []
    for _ in range(RESAMPLES):
        drawn = draw.choices(pairs, k=len(pairs))
        words = sum(w for _, w in drawn)
        found.append(100 * sum(e for e, _ in drawn) / words if words else 0.0)
    found.sort()
    below = sum(d < 0 for d in found) + sum(d == 0 for d in found) / 2
    return found[int(0.025 * RESAMPLES)], found[int(0.975 * RESAMPLES) - 1], 2 * min(below, RESAMPLES - below) / RESAMPLES


def difference(more, full, keys):
    """Points and interval of the utterances `keys`."""
    pairs = [(sum(more[key].values()), sum(w for _, w, _ in full[key].values())) for key in keys]
    words = sum(w for _, w in pairs)
    low, high, p = bootstrap(pairs)
    return f"{100 * sum(e for e, _ in pairs) / words:+.2f} [{low:+.2f}, {high:+.2f}]", p


def summarize(paths):
    full = read_scores(paths[0])
    words = sum(w for copies in full.values() for _, w, _ in copies.values())
    errors = sum(e for copies in full.values() for e, _, _ in copies.values())
    copies = sorted({copy for of_one in full.values() for copy in of_one})
    yield f"{len(full)} utterances, {len(copies)} copies each, {words} words in all"
    yield HEAD
    yield f"| {Path(paths[0]).stem} | {100 * errors / words:.2f} | | | | | |"
    sets = list(dict.fromkeys(group for group, _ in full))
    for path in paths[1:]:
        other = read_scores(path)
        if {key: set(of_one) for key, of_one in other.items()} != {key: set(of_one) for key, of_one in full.items()}:
            sys.exit(f"{path} has other utterances than {paths[0]}")
        more = {key: {copy: other[key][copy][0] - full[key][copy][0] for copy in full[key]} for key in full}
        changed, p = difference(more, full, full)
        by_set = ", ".join(f"{name} {difference(more, full, [k for k in full if k[0] == name])[0]}" for name in sets)
        rate = 100 * sum(e for copies in other.values() for e, _, _ in copies.values()) / words
        singles = [100 * sum(more[key].get(copy, 0) for key in full) * len(copies) / words for copy in copies]
        spread = f"{statistics.stdev(singles):.2f}" if len(singles) > 1 else ""
        texts = sum(full[key][copy][2] != other[key][copy][2] for key in full for copy in full[key])
        yield (f"| {Path(path).stem} | {rate:.2f} | {changed} | {p:.3f} | {spread} | {by_set} | {texts} of {sum(len(of_one) for of_one in full.values())} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--prepare", choices=MODELS, metavar="MODEL", help=", ".join(MODELS))
    what.add_argument("--summarize", nargs="+", metavar="SCORES", help="of full precision first")
    parser.add_argument("--shifts", type=int, default=4, help="copies of every recording")
    parser.add_argument("--delay", type=float, default=7, help="ms of silence from one copy to the next")
    parser.add_argument("--recipes", nargs="+", type=is_recipe, default=RECIPES)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--oasr", default=str(ROOT / "build" / "release" / "oasr"))
    args = parser.parse_args()
    if args.summarize:
        if len(args.summarize) < 2:
            parser.error("--summarize needs the scores of full precision and of another model")
        print("\n".join(summarize(args.summarize)))
        return
    if args.folder is None or args.shifts < 1:
        parser.error("--prepare needs --folder and one copy or more")
    manifest, left_out = prepare(args.prepare, args.shifts, args.delay, args.folder)
    if left_out:
        print(f"{left_out} recordings are no 16-bit PCM WAV files and are left out", file=sys.stderr)
    for command in commands(args.prepare, args.recipes, manifest, args.folder, args.oasr):
        print(shlex.join(command))


if __name__ == "__main__":
    main()
