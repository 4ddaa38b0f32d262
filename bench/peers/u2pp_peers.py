#!/usr/bin/env python3
"""oasr beside WeNet in PyTorch and ONNX Runtime on a U2++ Conformer, interleaved, in one run.

    bench/peers/u2pp_peers.py --wenet FOLDER [--sets an4 read] [--threads 2] [--every 1] ...

Needs a checkout of github.com/wenet-e2e/wenet (--wenet), a model in WeNet's layout and recordings with
manifests (the full test data, OASR_TEST_DATA, else ../shared). Makes its own virtual environment
(build/u2pp-peers-venv, from u2pp-requirements.txt), the ONNX files (build/u2pp-onnx) and its part of oasr.
Each engine runs in a process of its own, warm, with the same threads; what is asked of all, and what the
engines are made of, stands in u2pp_engines.py. Turns alternate: clip 1 by A, B, C, then clip 2 by A, B, C.

Sets: `an4`: all of AN4; `read`: read_english_misc and kathleen_arctic16k; `eight`: one clip of 8 s, joined
from AN4, ten times. --every N takes every N-th clip. Writes u2pp-peers-<threads>t.json, where a later run
of other sets adds its own, and from it the page u2pp-peers-<threads>t.md.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import time
import wave
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "tools")]

ENGINES = {  # name -> (title, kind)
    "oasr-f32": ("oasr float32", "float32"),
    "oasr-f16": ("oasr float16 weights", "float16"),
    "oasr-int8": ("oasr int8_w8a8", "int8_w8a8"),
    "wenet-f32": ("WeNet, PyTorch float32", "wenet:float32"),
    "wenet-int8": ("WeNet, PyTorch dynamic int8", "wenet:int8"),
    "ort-f32": ("ONNX Runtime float32", "onnxruntime:float32"),
    "ort-int8": ("ONNX Runtime dynamic int8", "onnxruntime:int8"),
}
SETS = {"an4": ["an4"], "read": ["read_english_misc", "kathleen_arctic16k"], "eight": ["an4"]}
STAGES = ("features", "encode", "search", "rescore")
REST = 0.05  # seconds between turns: an engine's threads may spin for a while after their work


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wenet", type=Path, required=True, help="a checkout of WeNet")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--every", type=int, default=1, help="take every N-th clip")
    parser.add_argument("--data", type=Path,
                        default=Path(os.environ.get("OASR_TEST_DATA", ROOT.parent / "shared")))
    parser.add_argument("--model", type=Path, help="WeNet folder (default: models/u2pp_en of the data)")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "cpu")
    parser.add_argument("--python", help="a Python that has the peers (default: a venv is made)")
    parser.add_argument("--worker", type=Path, help="oasr_peer_worker (default: it is built)")
    args = parser.parse_args()
    args.model = (args.model or args.data / "models" / "u2pp_en").resolve()
    args.wenet, args.onnx = args.wenet.resolve(), ROOT / "build" / "u2pp-onnx"
    # Not resolved: the Python of a virtual environment is a link to one that lacks its packages.
    args.python = args.python and os.path.abspath(args.python)
    return args


def ensure_venv():
    venv = ROOT / "build" / "u2pp-peers-venv"
    python, mark = venv / "bin" / "python", venv / "complete"
    if not mark.exists():
        print("making", venv, file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True)
        pip = [python, "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "-r", HERE / "u2pp-requirements.txt"], check=True)
        # For its normalizer only.
        subprocess.run([*pip, "--no-deps", "openai-whisper==20250625"], check=True)
        mark.touch()
    return str(python)


def ensure_worker():
    subprocess.run(["cmake", "--preset", "release", "--log-level=WARNING"], cwd=ROOT, check=True)
    subprocess.run(["cmake", "--build", "--preset", "release", "--target", "oasr_peer_worker"],
                   cwd=ROOT, check=True, stdout=sys.stderr)
    return ROOT / "build" / "release" / "bench" / "peers" / "oasr_peer_worker"


def peer_command(args, kind):
    return [args.python, "-B", str(HERE / "u2pp_engines.py"), kind, str(args.model), str(args.threads),
            str(args.wenet), str(args.onnx)]


def ensure_onnx(args):
    if not (args.onnx / "decoder.int8.onnx").exists():
        subprocess.run(peer_command(args, "export"), check=True, stderr=subprocess.DEVNULL)


# --- clips ------------------------------------------------------------------------------------

def samples_of(path):
    """16 kHz mono float32; every engine gets what this reads."""
    import soundfile
    import torch
    import torchaudio
    samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
    samples = torch.from_numpy(samples.mean(axis=1))
    return torchaudio.functional.resample(samples, rate, 16000).numpy()


def write_wav(path, samples):
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes((samples * 32768).round().clip(-32768, 32767).astype("<i2").tobytes())


def clips_of(args, name):
    """id, text, duration and a 16 kHz WAV of every clip of a set."""
    clips = []
    for folder in SETS[name]:
        lines = (args.data / "data" / folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
        for row in map(json.loads, lines):
            wav = ROOT / "build" / "u2pp-clips" / folder / (row["id"].replace("/", "_") + ".wav")
            if not wav.exists():
                write_wav(wav, samples_of(args.data / "data" / folder / row["audio"]))
            with wave.open(str(wav)) as file:
                seconds = file.getnframes() / 16000
            clips.append({"id": f"{folder}/{row['id']}", "text": row["text"], "audio": str(wav),
                          "duration": seconds})
    if name == "eight":
        return [eight_seconds(clips)] * 10
    return clips[::args.every]


def eight_seconds(clips):
    import numpy as np
    parts = [np.frombuffer(wave.open(c["audio"]).readframes(10**9), "<i2") for c in clips[:3]]
    joined = np.concatenate(parts)[:8 * 16000].astype(np.float32) / 32768
    wav = ROOT / "build" / "u2pp-clips" / "eight.wav"
    write_wav(wav, joined)
    return {"id": "eight", "text": "", "audio": str(wav), "duration": len(joined) / 16000}


# --- running ----------------------------------------------------------------------------------

class Worker:
    """An engine in its own process."""

    def __init__(self, name, args):
        self.name, kind = name, ENGINES[name][1]
        ours = name.startswith("oasr")
        command = [str(args.worker), str(args.model), kind, str(args.threads)] if ours \
            else peer_command(args, kind)
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": str(args.threads)})
        self.about = self.reply()

    def reply(self):
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": f"ended: {self.process.wait()}"}
        if "error" in answer:
            sys.exit(f"{self.name}: {answer['error']}")
        return answer

    def transcribe(self, clip):
        self.process.stdin.write(json.dumps({"audio": clip["audio"], "family": "ctc", "timestamps": True}) + "\n")
        self.process.stdin.flush()
        return self.reply()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def run_set(args, name):
    clips = clips_of(args, name)
    workers = {engine: Worker(engine, args) for engine in args.engines}
    answers = {engine: [] for engine in workers}
    for worker in workers.values():
        for clip in clips[:2]:  # warm
            worker.transcribe(clip)
    for clip in clips:
        for engine, worker in workers.items():
            time.sleep(REST)
            answer = worker.transcribe(clip)
            if not answer["text"].strip() and engine == args.engines[0]:
                print(f"no text: {clip['id']}", file=sys.stderr)
            answers[engine].append({**answer, "clip": clip["id"]})
        print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    versions = {engine: worker.about["version"] for engine, worker in workers.items()}
    for worker in workers.values():
        worker.close()
    return {"date": datetime.date.today().isoformat(), "load_after": round(os.getloadavg()[0], 2),
            "every": args.every, "versions": versions, "answers": answers,
            "clips": {clip["id"]: {k: clip[k] for k in ("text", "duration")} for clip in clips}}


# --- the page ---------------------------------------------------------------------------------

def summed(answers, key):
    return sum(answer[key] for answer in answers)


def best_peer(answers, key):
    return min((summed(a, key) for n, a in answers.items()
                if not n.startswith("oasr") and n.endswith("f32")), default=None)


def errors(answers, clips, normalize):
    import word_error
    total = word_error.Errors()
    for answer in answers:
        total += word_error.word_errors(clips[answer["clip"]]["text"], answer["text"], normalize)
    return f"{total.percent:.2f} ({total.length})" if total.length else "–"


def set_tables(run, normalize):
    import report
    answers, clips = run["answers"], run["clips"]
    audio = sum(clips[a["clip"]]["duration"] for a in next(iter(answers.values())))
    reference = [a["text"] for a in answers.get("oasr-f32", next(iter(answers.values())))]
    best = best_peer(answers, "wall")
    whole, parts = [], []
    for name, rows in answers.items():
        same = sum(a["text"] == text for a, text in zip(rows, reference))
        wall = summed(rows, "wall")
        whole.append([ENGINES[name][0], f"{1e3 * report.middle(rows, 'wall'):.1f}", f"{wall:.2f}",
                      f"{summed(rows, 'cpu') / wall:.2f}", f"{wall / audio:.4f}",
                      f"{max(a['peak_mib'] for a in rows):.0f}", errors(rows, clips, normalize),
                      f"{same} of {len(rows)}", f"{best / wall:.2f}" if best else "–"])
        cells = [ENGINES[name][0]]
        for stage in STAGES:
            seconds, peer = summed(rows, stage), best_peer(answers, stage)
            cells.append(f"{1e3 * seconds / audio:.2f} (× {peer / seconds:.2f})" if peer and seconds else "–")
        parts.append(cells)
    head = ["engine", "ms a clip (median)", "s, all", "CPU / wall", "RTF", "peak RSS, MiB", "WER, % (words)",
            "texts as oasr float32", "× the best peer in float32"]
    return [report.table(head, whole),
            "The parts, milliseconds a second of audio, and in brackets how many times faster than the best peer "
            "in float32:", report.table(["engine", "features", "encoder and CTC", "search", "rescoring"], parts)]


TITLES = {"an4": "AN4", "read": "Read English: read_english_misc and kathleen_arctic16k",
          "eight": "One clip of 8 s, ten times"}


def write(args, runs):
    import report
    import word_error
    normalize = word_error.english_normalizer()
    args.out.mkdir(parents=True, exist_ok=True)
    stem = args.out / f"u2pp-peers-{args.threads}t"
    record = {"runs": {}}
    if stem.with_suffix(".json").exists():
        record = json.loads(stem.with_suffix(".json").read_text(encoding="utf-8"))
    commit = report.commit()
    for run in runs.values():
        run.update(commit=commit, processor=report.processor(),
                   system=f"{platform.system()} {platform.machine()}")
    record["runs"].update(runs)
    stem.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    page = [f"# A U2++ Conformer beside its peers, {args.threads} threads",
            "Written by bench/peers/u2pp_peers.py (its text says how each number is taken, u2pp_engines.py what "
            "the engines are made of). The model: 12 blocks of 256, 3 + 3 decoder blocks, 500 units. Full "
            "context, prefix beam 10, attention rescoring. Peak RSS is of the whole process: Python, torch or "
            "ONNX Runtime, and the weights."]
    for name, run in record["runs"].items():
        seconds = sum(run["clips"][a["clip"]]["duration"] for a in next(iter(run["answers"].values())))
        every = f", every {run['every']}. clip" if run["every"] > 1 else ""
        page.append(f"## {TITLES[name]} ({len(next(iter(run['answers'].values())))} clips, {seconds:.0f} s{every})")
        page.append(f"{run['date']}, oasr {run['commit']}, {run['processor']}. "
                    f"{'; '.join(sorted(set(run['versions'].values())))}. Load average at the end: "
                    f"{run['load_after']}. Command: `bench/peers/u2pp_peers.py --wenet WENET --sets {name}"
                    f"{' --every ' + str(run['every']) if run['every'] > 1 else ''}`.")
        page += set_tables(run, normalize)
    stem.with_suffix(".md").write_text("\n\n".join(page) + "\n", encoding="utf-8")
    print("\n\n".join(page))


def main():
    args = parse_arguments()
    args.python = args.python or ensure_venv()
    if Path(sys.executable) != Path(args.python):
        os.execv(args.python, [args.python, "-B", *sys.argv, "--python", args.python])
    args.worker = (args.worker or ensure_worker()).resolve()
    ensure_onnx(args)
    write(args, {name: run_set(args, name) for name in args.sets})


if __name__ == "__main__":
    main()
