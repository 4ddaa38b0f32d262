#!/usr/bin/env python3
"""oasr beside faster-whisper and whisper.cpp on the same audio, interleaved, in one run.

    bench/peers/peers.py [--model base] [--threads 2] [--workloads cold short long] [--clips 60] ...

Makes its own virtual environment (build/peers-venv, from requirements.txt) and builds its part of
oasr in the release preset. Needs the weights that scripts/get_test_weights.sh makes and the full
test data (OASR_TEST_DATA, else ../shared). Each engine runs in a process of its own, with the same
threads: English, greedy, one temperature, no previous text, no VAD.

Workloads: `cold`: one clip of 5 s, from the start of the process; `short`: clips of about 5 s, half
AN4, half speechocean762, the model loaded and warm, no timestamps; `long`: ten minutes of read
English with timestamps. Turns alternate: clip 1 by A, B, C, then clip 2 by A, B, C, and so on.
Writes bench/results/cpu/peers-<model>-<threads>t[-<isa>].md and .json, or under --name; a record that is
there stays, unless --replace is given.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
import wave
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "tools")]

import recipe_models  # noqa: E402

ENGINES = {  # name -> (title, kind, container, argument)
    "oasr-f32": ("oasr float32", "oasr", "ct2", "float32"),
    "oasr-f16": ("oasr float16 weights", "oasr", "ct2", "float16"),
    "oasr-int8": ("oasr int8", "oasr", "ct2", "int8_w8a8"),
    "oasr-w4a8": ("oasr w4a8_g128_smooth", "oasr", "recipe:w4a8_g128_smooth", "auto"),
    "fw-f32": ("faster-whisper float32", "faster-whisper:float32", "ct2", None),
    "fw-int8": ("faster-whisper int8", "faster-whisper:int8", "ct2", None),
    "wcpp-f16": ("whisper.cpp f16", "whisper.cpp", "ggml", None),
    "wcpp-q8_0": ("whisper.cpp q8_0", "whisper.cpp", "ggml-q8_0", None),
    "wcpp-q4_0": ("whisper.cpp q4_0", "whisper.cpp", "ggml-q4_0", None),
    "wcpp-q4_k": ("whisper.cpp q4_K", "whisper.cpp", "ggml-q4_k", None),
}
ISAS = {"avx2": {"OASR_ISA": "avx2", "CT2_FORCE_CPU_ISA": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2",
                 "DNNL_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}}
REST = 0.3  # seconds between turns: an engine's threads may spin for a while after their work


def default_weights():
    cache = os.environ.get("OASR_CACHE_DIR", Path.home() / ".cache" / "oasr")
    return Path(os.environ.get("OASR_TEST_WEIGHTS", Path(cache) / "test-weights"))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="base", help="tiny.en or base")
    parser.add_argument("--threads", type=int, default=2)
    # q4_K on request only: it takes matrices of 256 columns, which tiny.en has not.
    parser.add_argument("--engines", nargs="+", choices=ENGINES,
                        default=[name for name in ENGINES if name != "wcpp-q4_k"])
    parser.add_argument("--workloads", nargs="+", choices=("cold", "short", "long"),
                        default=["cold", "short", "long"])
    parser.add_argument("--clips", type=int, default=60, help="of the short workload, at most 60")
    parser.add_argument("--passes", type=int, default=1, help="of the long workload")
    parser.add_argument("--long-seconds", type=float, default=0, help="cut the long file (0: whole)")
    parser.add_argument("--weights", type=Path, default=default_weights())
    parser.add_argument("--data", type=Path,
                        default=Path(os.environ.get("OASR_TEST_DATA", ROOT.parent / "shared")))
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "cpu")
    parser.add_argument("--python", help="a Python that has the peers (default: a venv is made)")
    parser.add_argument("--worker", type=Path, help="oasr_peer_worker (default: it is built)")
    parser.add_argument("--isa", choices=ISAS, help="hold oasr and faster-whisper to instructions "
                        "(whisper.cpp's wheel can not be held)")
    parser.add_argument("--name", help="of the record (default: peers-<model>-<threads>t[-<isa>])")
    parser.add_argument("--replace", action="store_true", help="a record of that name")
    args = parser.parse_args()
    args.name = args.name or f"peers-{args.model}-{args.threads}t" + (f"-{args.isa}" if args.isa else "")
    if not args.replace and (args.out / f"{args.name}.md").exists():
        parser.error(f"{args.out / args.name}.md is there: choose another --name, or say --replace")
    args.worker = args.worker and args.worker.resolve()
    # Not resolved: the Python of a virtual environment is a link to one that lacks its packages.
    args.python = args.python and os.path.abspath(args.python)
    return args


# --- preparation ------------------------------------------------------------------------------

def ensure_venv():
    """The Python of build/peers-venv, made from the pinned requirements if it is not there."""
    venv = ROOT / "build" / "peers-venv"
    python, mark = venv / "bin" / "python", venv / "complete"
    if not mark.exists():
        print("making", venv, file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True)
        pip = [python, "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "-r", HERE / "requirements.txt"], check=True)
        # For its normalizer only; its dependencies would bring torch.
        subprocess.run([*pip, "--no-deps", "openai-whisper==20250625"], check=True)
        mark.touch()
    return str(python)


def ensure_worker():
    subprocess.run(["cmake", "--preset", "release", "--log-level=WARNING"], cwd=ROOT, check=True)
    subprocess.run(["cmake", "--build", "--preset", "release", "--target", "oasr_peer_worker"],
                   cwd=ROOT, check=True, stdout=sys.stderr)
    return ROOT / "build" / "release" / "bench" / "peers" / "oasr_peer_worker"


def model_path(weights, model, container, python):
    folder = weights / model
    if container == "ct2":
        return folder / "ct2"
    f16 = folder / f"ggml-{model}.bin"
    if container == "ggml":
        return f16
    if container.startswith("recipe:"):
        return recipe_models.quantize(ROOT / "build" / "release" / "oasr", model, container[7:], ROOT / "build" / "recipes")
    kind = container.removeprefix("ggml-")
    quantized = ROOT / "build" / f"ggml-{model}-{kind}.bin"
    if not quantized.exists():
        quantized.parent.mkdir(exist_ok=True)
        subprocess.run([python, "-B", HERE / "ggml_quantize.py", kind, f16, quantized], check=True)
    return quantized


def nearest_clips(data, folder, count, seconds=5.0):
    lines = (data / "data" / folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    rows = sorted(map(json.loads, lines), key=lambda r: (abs(r["duration"] - seconds), r["id"]))
    return [{"set": folder, "id": r["id"], "text": r["text"], "duration": r["duration"],
             "audio": str(data / "data" / folder / r["audio"])} for r in rows[:count]]


def short_clips(data, count):
    """Every k-th of the 60 clips, so that a small run spans the same kinds."""
    pairs = zip(nearest_clips(data, "an4", 30), nearest_clips(data, "speechocean762", 30))
    clips = list(itertools.chain.from_iterable(pairs))
    step = max(1, len(clips) // max(1, count))
    return clips[::step if step % 2 or step == 1 else step - 1][:count]


def long_clip(data, seconds):
    """The ten-minute file as WAV, so that every engine reads the same bytes in the same way."""
    import faster_whisper
    row = json.loads((data / "data" / "longform" / "manifest.jsonl").read_text(encoding="utf-8"))
    samples = faster_whisper.decode_audio(str(data / "data" / "longform" / row["audio"]))
    clip = {"set": "longform", "id": row["id"], "text": row["text"], "duration": row["duration"],
            "audio": str(ROOT / "build" / "peers-longform.wav")}
    if seconds and seconds < row["duration"]:  # cut between two utterances
        parts = [s for s in row["segments"] if s["end"] <= seconds]
        clip.update(duration=parts[-1]["end"] + 0.2, text=" ".join(s["text"] for s in parts))
    with wave.open(clip["audio"], "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        kept = samples[:int(clip["duration"] * 16000)]
        file.writeframes((kept * 32768).round().clip(-32768, 32767).astype("<i2").tobytes())
    return clip


# --- running ----------------------------------------------------------------------------------

class Worker:
    """An engine in its own process; see engines.py for the protocol."""

    def __init__(self, name, args):
        self.name = name
        _, kind, container, argument = ENGINES[name]
        path = str(model_path(args.weights, args.model, container, args.python))
        threads = str(args.threads)
        if kind == "oasr":
            command = [str(args.worker), path, argument, threads]
        else:
            command = [args.python, "-B", str(HERE / "engines.py"), kind, path, threads]
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": threads,
                                              **(ISAS[args.isa] if args.isa else {})})
        self.about = self.reply()

    def reply(self):
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": f"ended: {self.process.wait()}"}
        if "error" in answer:
            sys.exit(f"{self.name}: {answer['error']}")
        return answer

    def transcribe(self, clip, timestamps):
        job = {"audio": clip["audio"], "timestamps": timestamps}
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        answer = self.reply()
        if not answer["text"].strip():
            sys.exit(f"{self.name}: no text for {clip['id']}: a time without a text means nothing")
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def run_cold(args, clip):
    results = {name: [] for name in args.engines}
    for _ in range(3):
        for name in args.engines:
            worker = Worker(name, args)
            answer = worker.transcribe(clip, False)
            answer["process"] = time.perf_counter() - worker.started
            answer.update(load=worker.about["load"], clip=clip["id"])
            worker.close()
            results[name].append(answer)
            time.sleep(REST)
    return results


def run_short(args, clips, versions):
    workers = {name: Worker(name, args) for name in args.engines}
    results = {name: [] for name in args.engines}
    for name, worker in workers.items():
        versions[name] = worker.about["version"]
        worker.transcribe(clips[0], False)  # warm
    for clip in clips:
        for name, worker in workers.items():
            time.sleep(REST)
            results[name].append({**worker.transcribe(clip, False), "clip": clip["id"]})
        print(".", end="", file=sys.stderr, flush=True)
    for worker in workers.values():
        worker.close()
    print(file=sys.stderr)
    return results


def run_long(args, clip, versions):
    results = {name: [] for name in args.engines}
    for _ in range(args.passes):
        for name in args.engines:
            worker = Worker(name, args)
            versions[name] = worker.about["version"]
            results[name].append({**worker.transcribe(clip, True), "clip": clip["id"]})
            worker.close()
            print(f"{name}: {results[name][-1]['wall']:.1f} s", file=sys.stderr)
            time.sleep(REST)
    return results


def main():
    args = parse_arguments()
    args.python = args.python or ensure_venv()
    if Path(sys.executable) != Path(args.python):  # scoring needs the same packages
        os.execv(args.python, [args.python, "-B", *sys.argv, "--python", args.python])
    if any(ENGINES[name][1] == "oasr" for name in args.engines):
        args.worker = args.worker or ensure_worker()
    import report
    clips, long_file = short_clips(args.data, args.clips), long_clip(args.data, args.long_seconds)
    versions, results = {}, {}
    load_before = os.getloadavg()[0]
    if "cold" in args.workloads:
        results["cold"] = run_cold(args, clips[0])
    if "short" in args.workloads:
        results["short"] = run_short(args, clips, versions)
    if "long" in args.workloads:
        results["long"] = run_long(args, long_file, versions)
    report.write(args, ENGINES, {c["id"]: c for c in [*clips, long_file]}, results, versions,
                 load_before)


if __name__ == "__main__":
    main()
