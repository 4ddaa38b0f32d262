#!/usr/bin/env python3
"""CPU microseconds of a frame in other decoders' CTC prefix beam search, on the posteriors that
oasr_bench_ctc makes (bench/micro/ctc.cc).

    ctc_search.py [--vocabulary 500 5000] [--beam 10] [--wenet FOLDER]

Needs numpy, flashlight-text 0.0.7 (C++; log-add) and pyctcdecode 0.5.0; with --wenet the search of
a checkout of WeNet, which needs torch. The best score of WeNet's must be oasr's.
"""

import argparse
import sys
import time

import numpy as np

FRAMES = 500


def mix64(x):
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def posteriors(vocabulary):
    """Log-probabilities [FRAMES, vocabulary], float32."""
    frames = np.arange(FRAMES, dtype=np.uint64)
    keys = frames[:, None] * np.uint64(65536) + np.arange(vocabulary, dtype=np.uint64)
    logits = 6 * (mix64(keys) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    spoken = np.arange(FRAMES) % 5 == 2
    logits[:, 0] += np.where(spoken, 10, 15)
    for salt, bonus in ((0, 14), (1, 12)):
        drawn = 1 + mix64(frames * np.uint64(2) + np.uint64(salt)) % np.uint64(vocabulary - 1)
        logits[spoken, drawn[spoken].astype(int)] += bonus
    return (logits - np.log(np.exp(logits).sum(1, keepdims=True))).astype(np.float32)


def flashlight(rows, beam):
    from flashlight.lib.text.decoder import (CriterionType, LexiconFreeDecoder,
                                             LexiconFreeDecoderOptions, ZeroLM)
    options = LexiconFreeDecoderOptions(beam_size=beam, beam_size_token=beam, beam_threshold=1e9,
                                        lm_weight=0, sil_score=0, log_add=True,
                                        criterion_type=CriterionType.CTC)
    decoder = LexiconFreeDecoder(options, ZeroLM(), rows.shape[1] + 7, 0, [])
    return lambda: decoder.decode(rows.ctypes.data, *rows.shape)[0].score


def pyctcdecode(rows, beam):
    from pyctcdecode import build_ctcdecoder
    labels = [""] + [chr(0x4E00 + i) for i in range(rows.shape[1] - 1)]
    decoder = build_ctcdecoder(labels)
    top = np.sort(rows, axis=1)[:, -beam].min()  # at least `beam` tokens of each frame
    return lambda: decoder.decode_beams(rows, beam_width=beam, beam_prune_logp=-1e9,
                                        token_min_logp=float(max(top, -9)))[0][-1]


def wenet(rows, beam, folder):
    sys.path.insert(0, folder)
    import torch
    from wenet.models.transformer.search import ctc_prefix_beam_search
    torch.set_num_threads(1)
    batch, lengths = torch.from_numpy(rows)[None], torch.tensor([len(rows)])
    return lambda: ctc_prefix_beam_search(batch, lengths, beam)[0].score


def measure(call):
    score = call()
    best = min(_timed(call) for _ in range(5))
    return best / FRAMES * 1e6, score


def _timed(call):
    begin = time.process_time()
    call()
    return time.process_time() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--vocabulary", type=int, nargs="+", default=[500, 5000])
    parser.add_argument("--beam", type=int, default=10)
    parser.add_argument("--wenet", help="a checkout of WeNet")
    args = parser.parse_args()
    for vocabulary in args.vocabulary:
        rows = posteriors(vocabulary)
        peers = {"flashlight-text": lambda: flashlight(rows, args.beam),
                 "pyctcdecode": lambda: pyctcdecode(rows, args.beam)}
        if args.wenet:
            peers["wenet (Python)"] = lambda: wenet(rows, args.beam, args.wenet)
        for name, make in peers.items():
            try:
                call = make()
            except ImportError as error:
                print(f"{vocabulary:6} {name:16} not here: {error}")
                continue
            microseconds, score = measure(call)
            print(f"{vocabulary:6} {name:16} {microseconds:9.2f} us/frame  best score {score:.5f}")


if __name__ == "__main__":
    main()
