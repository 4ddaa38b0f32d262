#!/usr/bin/env python3
"""Runs one peer of oasr on a U2++ Conformer in a process of its own, for u2pp_peers.py.

    u2pp_engines.py KIND MODEL THREADS WENET ONNX     KIND: wenet:float32, wenet:int8,
                                                            onnxruntime:float32, onnxruntime:int8
    u2pp_engines.py export MODEL THREADS WENET ONNX   writes the ONNX files into the folder ONNX

MODEL is a folder in WeNet's layout, WENET a checkout of github.com/wenet-e2e/wenet, whose own classes
and search are called. Replies with one JSON object when the model is loaded, {"load": s, "version": …},
then for each line {"audio": path} on standard input one line {"text", "wall", "cpu", "peak_mib",
"features", "encode", "search", "rescore"}: seconds of the parts, CPU seconds of the process, and its
peak resident memory so far. Audio is 16 kHz mono s16 WAV.

The request to all: full context, CTC prefix beam 10, attention rescoring with ctc_weight 0.5 and the
reverse_weight of training.

`wenet` is WeNet in Python: torchaudio's fbank, its model, its search, its rescoring; int8 is
torch.ao.quantization.quantize_dynamic of every nn.Linear. `onnxruntime` is what packages give without
WeNet: kaldi-native-fbank, the exported encoder with CTC, flashlight-text's beam search (C++), the
exported decoders; int8 is onnxruntime.quantization.quantize_dynamic with WeNet's own settings.
"""

import json
import math
import os
import resource
import sys
import time
import types
import typing
import wave
from pathlib import Path

import numpy as np

BEAM, CTC_WEIGHT = 10, 0.5


def read_wav(path):
    """16 kHz mono s16 -> float32 samples in int16's scale."""
    with wave.open(path) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32)


def read_units(model):
    lines = (model / "units.txt").read_text(encoding="utf-8").splitlines()
    return [line.split()[0] for line in lines if line.strip()]


def text_of(tokens, units):
    return "".join(units[token] for token in tokens).replace("▁", " ").strip()


# --- WeNet ------------------------------------------------------------------------------------

def import_wenet(folder):
    """Makes WeNet's modules importable without its command line (which needs librosa and more), and with
    what they expect of other packages: names that torch has dropped, a table of Whisper's languages."""
    import torch
    import torch.nn.modules.conv as conv
    package = types.ModuleType("wenet")
    package.__path__ = [str(folder / "wenet")]
    whisper, tokenizer = types.ModuleType("whisper"), types.ModuleType("whisper.tokenizer")
    whisper.__path__, tokenizer.LANGUAGES = [], {}
    sys.modules.update({"wenet": package, "whisper": whisper, "whisper.tokenizer": tokenizer})
    for name, value in (("Union", typing.Union), ("Optional", typing.Optional), ("Tensor", torch.Tensor)):
        if not hasattr(conv, name):
            setattr(conv, name, value)


def make_model(folder, wenet):
    """WeNet's ASRModel with the weights of `folder`, and its configuration."""
    import_wenet(wenet)
    import torch
    import yaml
    from wenet.models.transformer.asr_model import ASRModel
    from wenet.models.transformer.cmvn import GlobalCMVN
    from wenet.models.transformer.ctc import CTC
    from wenet.models.transformer.decoder import BiTransformerDecoder
    from wenet.models.transformer.encoder import ConformerEncoder
    from wenet.utils.cmvn import load_cmvn
    config = yaml.safe_load((folder / "train.yaml").read_text(encoding="utf-8"))
    mean, istd = (torch.from_numpy(x).float() for x in load_cmvn(str(folder / "global_cmvn"), True))
    encoder = ConformerEncoder(config["input_dim"], global_cmvn=GlobalCMVN(mean, istd),
                               **config["encoder_conf"])
    units, width = config["output_dim"], encoder.output_size()
    model = ASRModel(vocab_size=units, encoder=encoder,
                     decoder=BiTransformerDecoder(units, width, **config["decoder_conf"]),
                     ctc=CTC(units, width, blank_id=0),
                     special_tokens=config["tokenizer_conf"]["special_tokens"], **config["model_conf"])
    model.load_state_dict(torch.load(folder / "final.pt", map_location="cpu"))
    return model.eval(), config


def load_wenet(kind, folder, threads, wenet):
    import torch
    import torchaudio
    torch.set_num_threads(threads)
    model, config = make_model(folder, wenet)
    if kind == "int8":
        model = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
    from wenet.models.transformer.search import attention_rescoring, ctc_prefix_beam_search
    units, reverse = read_units(folder), config["model_conf"]["reverse_weight"]

    @torch.inference_mode()
    def transcribe(samples, lap):
        features = torchaudio.compliance.kaldi.fbank(
            torch.from_numpy(samples)[None], num_mel_bins=80, frame_length=25, frame_shift=10,
            dither=0.0, energy_floor=0.0, sample_frequency=16000)[None]
        lap("features")
        lengths = torch.tensor([features.size(1)])
        # pylint: disable-next=protected-access
        hidden, mask = model._forward_encoder(features, lengths, -1, -1)
        frames = mask.squeeze(1).sum(1)
        log_probs = model.ctc_logprobs(hidden)
        lap("encode")
        found = ctc_prefix_beam_search(log_probs, frames, BEAM)
        lap("search")
        best = attention_rescoring(model, found, hidden, frames, CTC_WEIGHT, reverse)[0]
        lap("rescore")
        return text_of(best.tokens, units)

    return transcribe, f"WeNet on torch {torch.__version__}, torchaudio {torchaudio.__version__}"


# --- ONNX Runtime -----------------------------------------------------------------------------

def export(folder, threads, wenet, out):
    """encoder.onnx: features [1, T, 80] -> hidden, log_probs; decoder.onnx: hyps, lens, hidden -> left, right."""
    import torch
    torch.set_num_threads(threads)
    model, config = make_model(folder, wenet)
    reverse = config["model_conf"]["reverse_weight"]
    none = torch.zeros(0, 0, 0, 0)

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, features):
            hidden = self.model.encoder.forward_chunk(features, 0, -1, none, none)[0]
            return hidden, self.model.ctc.log_softmax(hidden)

    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, hyps, lens, hidden):
            return self.model.forward_attention_decoder(hyps, lens, hidden, reverse)

    def write(module, inputs, name, input_names, output_names, axes):
        torch.onnx.export(module.eval(), inputs, str(out / f"{name}.onnx"), opset_version=17, dynamo=False,
                          input_names=input_names, output_names=output_names, dynamic_axes=axes)
        from onnxruntime.quantization import QuantType, quantize_dynamic
        quantize_dynamic(str(out / f"{name}.onnx"), str(out / f"{name}.int8.onnx"),
                         weight_type=QuantType.QUInt8)

    out.mkdir(parents=True, exist_ok=True)
    hyps, lens = torch.randint(3, 400, (10, 20)), torch.randint(15, 21, (10,))
    with torch.no_grad():
        features = torch.randn(1, 403, 80)
        write(Encoder(), (features,), "encoder", ["features"], ["hidden", "log_probs"],
              {"features": {1: "T"}, "hidden": {1: "U"}, "log_probs": {1: "U"}})
        hidden = Encoder()(features)[0]
        write(Decoder(), (hyps, lens, hidden), "decoder", ["hyps", "lens", "hidden"], ["left", "right"],
              {"hyps": {0: "N", 1: "L"}, "lens": {0: "N"}, "hidden": {1: "U"},
               "left": {0: "N", 1: "L"}, "right": {0: "N", 1: "L"}})


def kaldi_features():
    import kaldi_native_fbank as knf
    options = knf.FbankOptions()
    options.frame_opts.dither = 0
    options.frame_opts.samp_freq = 16000
    options.mel_opts.num_bins = 80

    def features(samples):
        fbank = knf.OnlineFbank(options)
        fbank.accept_waveform(16000, samples)
        fbank.input_finished()
        return np.stack([fbank.get_frame(i) for i in range(fbank.num_frames_ready)])

    return features


def flashlight_search(vocabulary):
    """log_probs [T, V] -> the best hypotheses: tokens and score. Its beam counts a prefix that ends in a
    blank and the same one that does not as two."""
    from flashlight.lib.text.decoder import (CriterionType, LexiconFreeDecoder,
                                             LexiconFreeDecoderOptions, ZeroLM)
    options = LexiconFreeDecoderOptions(beam_size=BEAM, beam_size_token=BEAM, beam_threshold=1e9,
                                        lm_weight=0, sil_score=0, log_add=True,
                                        criterion_type=CriterionType.CTC)
    decoder = LexiconFreeDecoder(options, ZeroLM(), vocabulary + 7, 0, [])

    def search(log_probs):
        found = {}
        for result in decoder.decode(log_probs.ctypes.data, *log_probs.shape):
            tokens, last = [], 0
            for token in result.tokens:
                if token not in (last, 0) and 0 < token < vocabulary:
                    tokens.append(token)
                last = token
            key = tuple(tokens)
            found[key] = np.logaddexp(found.get(key, -math.inf), result.score)
        return sorted(found.items(), key=lambda row: -row[1])[:BEAM]

    return search


def load_onnx(kind, folder, threads, onnx):
    import onnxruntime
    import yaml
    config = yaml.safe_load((folder / "train.yaml").read_text(encoding="utf-8"))
    special, reverse = config["tokenizer_conf"]["special_tokens"], config["model_conf"]["reverse_weight"]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    ending = ".int8.onnx" if kind == "int8" else ".onnx"
    encoder, decoder = (onnxruntime.InferenceSession(str(onnx / (name + ending)), options,
                                                     providers=["CPUExecutionProvider"])
                        for name in ("encoder", "decoder"))
    units, features, search = read_units(folder), kaldi_features(), flashlight_search(config["output_dim"])

    def rescore(hypotheses, hidden):
        lens = np.array([len(tokens) + 1 for tokens, _ in hypotheses])
        hyps = np.full((len(lens), lens.max()), special["<eos>"], np.int64)
        hyps[:, 0] = special["<sos>"]
        for row, (tokens, _) in enumerate(hypotheses):
            hyps[row, 1:len(tokens) + 1] = tokens
        left, right = decoder.run(None, {"hyps": hyps, "lens": lens, "hidden": hidden})
        scores = []
        for row, (tokens, ctc) in enumerate(hypotheses):
            steps = np.arange(len(tokens) + 1)
            ahead = left[row, steps, [*tokens, special["<eos>"]]].sum()
            back = right[row, steps, [*tokens[::-1], special["<eos>"]]].sum()
            scores.append((1 - reverse) * ahead + reverse * back + CTC_WEIGHT * ctc)
        return hypotheses[int(np.argmax(scores))][0]

    def transcribe(samples, lap):
        rows = features(samples)
        lap("features")
        hidden, log_probs = encoder.run(None, {"features": rows[None]})
        lap("encode")
        hypotheses = search(np.ascontiguousarray(log_probs[0]))
        lap("search")
        best = rescore(hypotheses, hidden)
        lap("rescore")
        return text_of(best, units)

    return transcribe, f"onnxruntime {onnxruntime.__version__}, kaldi-native-fbank, flashlight-text"


# --- the protocol -----------------------------------------------------------------------------

def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_mib():
    """Of this program: ru_maxrss would begin at what the process that started it held."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024


def run(transcribe, job):
    stages = {}
    wall, cpu = time.perf_counter(), cpu_seconds()
    last = [wall]

    def lap(name):
        now = time.perf_counter()
        stages[name], last[0] = now - last[0], now

    text = transcribe(read_wav(job["audio"]), lap)
    return {"text": text, "wall": time.perf_counter() - wall, "cpu": cpu_seconds() - cpu, **stages,
            "peak_mib": peak_mib()}


def main():
    kind, model, threads, wenet, onnx = sys.argv[1:]
    model, threads, wenet, onnx = Path(model), int(threads), Path(wenet), Path(onnx)
    # Whatever a library prints must not mix with the replies.
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    if kind == "export":
        export(model, threads, wenet, onnx)
        return
    start = time.perf_counter()
    engine, _, form = kind.partition(":")
    if engine == "wenet":
        transcribe, version = load_wenet(form, model, threads, wenet)
    elif engine == "onnxruntime":
        transcribe, version = load_onnx(form, model, threads, onnx)
    else:
        sys.exit(f"unknown engine {kind}")
    print(json.dumps({"load": time.perf_counter() - start, "version": version}), file=replies)
    for line in sys.stdin:
        print(json.dumps(run(transcribe, json.loads(line))), file=replies)


if __name__ == "__main__":
    main()
