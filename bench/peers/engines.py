#!/usr/bin/env python3
"""Runs one peer engine in a process of its own, for peers.py.

    engines.py KIND MODEL_PATH THREADS        KIND: faster-whisper:float32, faster-whisper:int8,
                                                    whisper.cpp

Replies with one JSON object when the model is loaded, {"load": s, "version": ...}. Then for each line
{"audio": path, "timestamps": bool} on standard input one line {"text", "wall", "cpu", "first",
"peak_mib"}: seconds from the file's name to the whole text, the processor seconds of the process in
that time, seconds until the first segment, and the process's peak resident memory so far.

The same request to all: English, greedy, one temperature, no previous text, no VAD.
"""

import json
import os
import resource
import sys
import time
import wave

import numpy as np


def read_wav(path):
    """16 kHz mono s16 -> float32 samples."""
    with wave.open(path) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768


def load_faster_whisper(compute_type, path, threads):
    import ctranslate2
    import faster_whisper
    model = faster_whisper.WhisperModel(path, device="cpu", compute_type=compute_type,
                                        cpu_threads=threads)

    def transcribe(audio, timestamps, on_segment):
        segments, _ = model.transcribe(
            read_wav(audio), language="en", beam_size=1, best_of=1,
            temperature=0.0, condition_on_previous_text=False, vad_filter=False,
            without_timestamps=not timestamps)
        texts = []
        for segment in segments:
            on_segment()
            texts.append(segment.text)
        return "".join(texts).strip()

    return transcribe, f"faster-whisper {faster_whisper.__version__}, " \
                       f"ctranslate2 {ctranslate2.__version__}"


def load_whisper_cpp(path, threads):
    import importlib.metadata
    from pywhispercpp.model import Model
    model = Model(path, n_threads=threads, redirect_whispercpp_logs_to=None, language="en",
                  print_progress=False, print_realtime=False, temperature=0.0, temperature_inc=0.0,
                  no_context=True, greedy={"best_of": 1})

    def transcribe(audio, timestamps, on_segment):
        segments = model.transcribe(read_wav(audio), no_timestamps=not timestamps,
                                    new_segment_callback=lambda _: on_segment())
        return " ".join(segment.text for segment in segments).strip()

    return transcribe, f"pywhispercpp {importlib.metadata.version('pywhispercpp')}"


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_mib():
    """Of this program: ru_maxrss would begin at what the process that started it held."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024


def run(transcribe, job):
    first = []
    wall, cpu = time.perf_counter(), cpu_seconds()
    text = transcribe(job["audio"], job["timestamps"],
                      lambda: first or first.append(time.perf_counter() - wall))
    return {"text": text, "wall": time.perf_counter() - wall, "cpu": cpu_seconds() - cpu,
            "first": first[0] if first else 0,
            "peak_mib": peak_mib()}


def main():
    kind, path, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    # Whatever a library prints must not mix with the replies.
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    start = time.perf_counter()
    if kind.startswith("faster-whisper:"):
        transcribe, version = load_faster_whisper(kind.split(":")[1], path, threads)
    elif kind == "whisper.cpp":
        transcribe, version = load_whisper_cpp(path, threads)
    else:
        sys.exit(f"unknown engine {kind}")
    print(json.dumps({"load": time.perf_counter() - start, "version": version}), file=replies)
    for line in sys.stdin:
        print(json.dumps(run(transcribe, json.loads(line))), file=replies)


if __name__ == "__main__":
    main()
