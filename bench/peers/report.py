"""The tables and the record that peers.py writes."""

import datetime
import json
import platform
import statistics
import subprocess
from pathlib import Path

import word_error

ROOT = Path(__file__).resolve().parent.parent.parent


def processor():
    names = [line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {len(names)} logical processors"


def commit():
    result = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"],
                            capture_output=True, text=True, check=False)
    return result.stdout.strip() or "unknown"


def errors_of(answers, clips, which, normalize):
    """Summed errors of the answers whose clip is of the set `which`."""
    measure = (word_error.joined_character_errors if which == "an4" else word_error.word_errors)
    total = word_error.Errors()
    for answer in answers:
        clip = clips[answer["clip"]]
        if clip["set"] == which:
            total += measure(clip["text"], answer["text"], normalize)
    return total


def middle(answers, key):
    return statistics.median(answer[key] for answer in answers)


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def cold_table(engines, results, **_):
    rows = [[engines[name][0], f"{middle(a, 'process'):.2f}", f"{middle(a, 'load'):.2f}",
             f"{middle(a, 'wall'):.2f}", f"{max(x['peak_mib'] for x in a):.0f}"]
            for name, a in results.items()]
    return table(["engine", "process, s", "of it loading, s", "of it the clip, s", "peak RSS, MiB"],
                 rows)


def ratio(results, name, other):
    """How many times faster `name` is than `other`, over the same clips."""
    if other not in results or name == other:
        return "–"
    times = [sum(x["wall"] for x in results[n]) for n in (other, name)]
    return f"{times[0] / times[1]:.2f}"


def best_peer(results, name):
    """How many times faster an engine of ours is than the fastest mode of all peers."""
    peers = {n: sum(x["wall"] for x in a) for n, a in results.items() if not n.startswith("oasr")}
    if not peers or not name.startswith("oasr"):
        return "–"
    return f"{min(peers.values()) / sum(x['wall'] for x in results[name]):.2f}"


def short_table(engines, results, clips, normalize, **_):
    rows = []
    for name, answers in results.items():
        wall, cpu = (sum(x[key] for x in answers) for key in ("wall", "cpu"))
        audio = sum(clips[x["clip"]]["duration"] for x in answers)
        words = errors_of(answers, clips, "speechocean762", normalize)
        letters = errors_of(answers, clips, "an4", normalize)
        rows.append([engines[name][0], f"{middle(answers, 'wall'):.3f}",
                     f"{middle(answers, 'cpu'):.3f}", f"{cpu / wall:.2f}",
                     f"{wall / audio:.3f}", f"{max(x['peak_mib'] for x in answers):.0f}",
                     f"{words.percent:.2f} ({words.length})",
                     f"{letters.percent:.2f} ({letters.length})",
                     ratio(results, name, "fw-f32"), ratio(results, name, "wcpp-f16"),
                     best_peer(results, name)])
    return table(["engine", "s a clip (median)", "CPU s a clip (median)", "CPU / wall", "RTF",
                  "peak RSS, MiB", "speechocean762 WER, % (words)", "AN4 joined CER, % (letters)",
                  "× faster-whisper float32", "× whisper.cpp f16", "× the best peer"], rows)


def long_table(engines, results, clips, normalize, **_):
    rows = []
    for name, answers in results.items():
        clip = clips[answers[0]["clip"]]
        wall = middle(answers, "wall")
        words = errors_of(answers[:1], clips, "longform", normalize)
        rows.append([engines[name][0], f"{wall:.1f}", f"{middle(answers, 'cpu') / wall:.2f}",
                     f"{wall / clip['duration']:.3f}", f"{middle(answers, 'first'):.2f}",
                     f"{max(x['peak_mib'] for x in answers):.0f}",
                     f"{words.percent:.2f} (S {words.substitutions} D {words.deletions} "
                     f"I {words.insertions} of {words.length})",
                     ratio(results, name, "fw-f32"), ratio(results, name, "wcpp-f16"),
                     best_peer(results, name)])
    return table(["engine", "s", "CPU / wall", "RTF", "first text, s", "peak RSS, MiB", "WER, %",
                  "× faster-whisper float32", "× whisper.cpp f16", "× the best peer"], rows)


TITLES = {"cold": ("Cold: one clip in a new process, median of three", cold_table),
          "short": ("Short clips, model warm", short_table),
          "long": ("Long file", long_table)}


def write(args, engines, clips, results, versions, load_before):
    normalize = word_error.english_normalizer()
    facts = {"model": args.model, "threads": args.threads, "processor": processor(), "isa": args.isa,
             "system": f"{platform.system()} {platform.machine()}", "commit": commit(),
             "date": datetime.date.today().isoformat(), "versions": versions,
             "load_before": round(load_before, 2)}
    seconds = sum(clips[x["clip"]]["duration"] for x in next(iter(results["short"].values()))) \
        if "short" in results else 0
    parts = [f"# Whisper {args.model} beside its peers, {args.threads} threads",
             f"{facts['date']}, oasr {facts['commit']}, {facts['processor']}. Written by "
             "bench/peers/peers.py (its text says how each number is taken); turns of the engines "
             "alternate. English given, greedy, one temperature, no previous text, no VAD. "
             + (f"oasr and faster-whisper are held to {args.isa}. " if args.isa else "") +
             f"Load average before the run: {facts['load_before']}.",
             "Versions: " + "; ".join(sorted(set(versions.values()))) + "." if versions else ""]
    for workload, answers in results.items():
        title, make = TITLES[workload]
        count = len(next(iter(answers.values())))
        note = {"short": f" ({count} clips, {seconds:.0f} s)",
                "long": f" ({next(clips[a[0]['clip']]['duration'] for a in answers.values()):.0f} s, "
                        f"passes: {count})"}.get(workload, "")
        parts.append(f"## {title}{note}")
        parts.append(make(engines, answers, clips=clips, normalize=normalize))
    text = "\n\n".join(part for part in parts if part) + "\n"
    args.out.mkdir(parents=True, exist_ok=True)
    stem = args.out / args.name
    stem.with_name(stem.name + ".md").write_text(text, encoding="utf-8")
    record = {**facts, "results": results}
    stem.with_name(stem.name + ".json").write_text(json.dumps(record, indent=1) + "\n")
    print(text)
