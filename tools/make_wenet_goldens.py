#!/usr/bin/env python3
"""Small random checkpoints of WeNet's U2 and U2++ in their variants, with WeNet's own outputs.

    tools/make_wenet_goldens.py [FOLDER]         # tests/data/wenet

Needs `wenet` (commit 015469960db7), torch, numpy and PyYAML in the Python that runs it. Every folder is a
WeNet model folder with random weights and a golden.npz beside them:

    encoder, ctc          output [T, D] and log-probabilities [T, V] in full context
    chunk4, streamed4     output under the mask of chunks of 4 frames, and chunk by chunk (causal models)
    streamed4_left2       chunk by chunk, two chunks to the left (causal models)
    hyps, lengths         two hypotheses with sos in front, [2, L], and their lengths with sos
    left, right           log-probabilities of the decoders [2, L, V] in full context; right only if there is one

features.npz beside the folders holds the features [99, 80] of all of them. Numbers are drawn anew in
each run from fixed seeds; another version of torch may draw others.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import yaml
from wenet.models.transformer.asr_model import ASRModel
from wenet.models.transformer.cmvn import GlobalCMVN
from wenet.models.transformer.ctc import CTC
from wenet.models.transformer.decoder import BiTransformerDecoder, TransformerDecoder
from wenet.models.transformer.encoder import ConformerEncoder

BINS, UNITS, FRAMES = 80, 20, 99
SPECIAL = {"<blank>": 0, "<unk>": 1, "<sos>": 2, "<eos>": 2}
ENCODER = {
    "output_size": 16, "attention_heads": 2, "linear_units": 48, "num_blocks": 2, "input_layer": "conv2d",
    "normalize_before": True, "cnn_module_kernel": 15, "use_cnn_module": True, "activation_type": "swish",
    "pos_enc_layer_type": "rel_pos", "selfattention_layer_type": "rel_selfattn", "causal": True,
    "cnn_module_norm": "layer_norm", "use_dynamic_chunk": True, "use_dynamic_left_chunk": False,
}
DECODER = {"attention_heads": 2, "linear_units": 48, "num_blocks": 1}
OFFLINE = {"causal": False, "use_dynamic_chunk": False}

# encoder: what differs from ENCODER; plain: the decoder of U2; extras: tensors that nothing reads;
# cmvn: where the statistics are (state, file, both); old: a train.yaml of WeNet 2.
VARIANTS = {
    "conv2d6": {"encoder": {"input_layer": "conv2d6", "output_size": 24, "attention_heads": 3},
                "decoder": {"attention_heads": 3}},
    "conv2d8_even_kernel": {"encoder": {"input_layer": "conv2d8", "cnn_module_kernel": 8}},
    "batch_norm_causal": {"encoder": {"cnn_module_norm": "batch_norm"}, "extras": True},
    "batch_norm": {"encoder": {"cnn_module_norm": "batch_norm", **OFFLINE}},
    "layer_norm_gelu": {"encoder": {"activation_type": "gelu", **OFFLINE}, "decoder": {"activation_type": "swish"}},
    "wide_kernel_relu": {"encoder": {"activation_type": "relu", "cnn_module_kernel": 31},
                         "decoder": {"activation_type": "gelu"}},
    "plain_decoder_cmvn_file": {"encoder": {}, "plain": True, "cmvn": "file"},
    "old_config": {"encoder": {"cnn_module_kernel": 7, **OFFLINE}, "plain": True, "old": True, "cmvn": "both",
                   "float32": True},
}


def randomise(model, generator):
    """Norms, biases and running statistics that are not their initial ones."""

    def draw(shape, low, high):
        return torch.empty(shape).uniform_(low, high, generator=generator)

    for name, tensor in model.state_dict().items():
        if name.endswith("num_batches_tracked"):
            tensor.fill_(1000)
        elif name.endswith("running_mean"):
            tensor.copy_(draw(tensor.shape, -0.3, 0.3))
        elif name.endswith("running_var"):
            tensor.copy_(draw(tensor.shape, 0.05, 0.6))
        elif "norm" in name and name.endswith("weight"):
            tensor.copy_(draw(tensor.shape, 0.6, 1.4))
        elif name.endswith("bias"):
            tensor.copy_(draw(tensor.shape, -0.2, 0.2))
        elif tensor.dim() > 1 and "pe" != name.split(".")[-1]:
            bound = (3.0 / np.prod(tensor.shape[1:])) ** 0.5
            tensor.copy_(draw(tensor.shape, -bound, bound))


def make_model(variant, mean, istd, seed):
    torch.manual_seed(seed)
    conf = {**ENCODER, **variant["encoder"]}
    dropouts = {"dropout_rate": 0.1, "positional_dropout_rate": 0.1}
    cmvn = GlobalCMVN(torch.from_numpy(mean), torch.from_numpy(istd))
    encoder = ConformerEncoder(BINS, global_cmvn=cmvn, attention_dropout_rate=0.0, **dropouts, **conf)
    plain = variant.get("plain", False)
    decoder_conf = {**DECODER, **variant.get("decoder", {}), **({} if plain else {"r_num_blocks": 1})}
    make = TransformerDecoder if plain else BiTransformerDecoder
    decoder = make(UNITS, conf["output_size"], **dropouts, **decoder_conf)
    weights = {"ctc_weight": 0.3, "lsm_weight": 0.1, "length_normalized_loss": False}
    if not plain:
        weights["reverse_weight"] = 0.3
    model = ASRModel(vocab_size=UNITS, encoder=encoder, decoder=decoder,
                     ctc=CTC(UNITS, conf["output_size"], blank_id=0),
                     special_tokens=None if variant.get("old") else SPECIAL, **weights)
    randomise(model, torch.Generator().manual_seed(seed))
    if not variant.get("float32"):
        for name, tensor in model.state_dict().items():
            if tensor.is_floating_point() and "global_cmvn" not in name and not name.endswith(".pe"):
                tensor.copy_(tensor.half().float())
    model.eval()
    config = {"encoder": "conformer", "encoder_conf": conf, "decoder": "transformer" if plain else "bitransformer",
              "decoder_conf": decoder_conf, "model_conf": weights, "input_dim": BINS, "output_dim": UNITS}
    fbank = {"num_mel_bins": BINS, "frame_length": 25, "frame_shift": 10, "dither": 0.1}
    if variant.get("old"):
        config |= {"cmvn_file": "data/train/global_cmvn", "is_json_cmvn": True,
                   "dataset_conf": {"fbank_conf": fbank, "resample_conf": {"resample_rate": 16000}}}
    else:
        config |= {"model": "asr_model", "ctc": "ctc", "ctc_conf": {"ctc_blank_id": 0}, "cmvn": "global_cmvn",
                   "cmvn_conf": {"cmvn_file": "/home/someone/data/global_cmvn", "is_json_cmvn": True},
                   "dataset": "asr",
                   "dataset_conf": {"fbank_conf": fbank, "resample_conf": {"resample_rate": 16000}},
                   "tokenizer": "char",
                   "tokenizer_conf": {"symbol_table_path": "/home/someone/data/units.txt", "special_tokens": SPECIAL,
                                      "split_with_space": False}}
    return model, config


def outputs(model, features, generator):
    encoder = model.encoder
    x, lengths = features[None], torch.tensor([FRAMES])
    full, _ = encoder(x, lengths, decoding_chunk_size=-1)
    arrays = {"encoder": full[0], "ctc": model.ctc.log_softmax(full)[0]}
    if encoder.use_dynamic_chunk:
        arrays["chunk4"] = encoder(x, lengths, 4, -1)[0][0]
        arrays["streamed4"] = encoder.forward_chunk_by_chunk(x, 4, -1)[0][0]
        arrays["streamed4_left2"] = encoder.forward_chunk_by_chunk(x, 4, 2)[0][0]
    sizes = torch.tensor([6, 4])
    hyps = torch.randint(3, UNITS - 1, (2, 6), generator=generator)
    hyps[:, 0] = model.sos
    hyps[1, 4:] = model.eos
    both = isinstance(model.decoder, BiTransformerDecoder)
    left, right = model.forward_attention_decoder(hyps, sizes, full, 0.3 if both else 0.0)
    arrays |= {"hyps": hyps, "lengths": sizes, "left": left}
    if both:
        arrays["right"] = right
    return {name: value.detach().numpy() for name, value in arrays.items()}


def write_variant(folder, variant, seed, features):
    folder.mkdir(parents=True, exist_ok=True)
    numbers = np.random.default_rng(seed)
    mean = numbers.uniform(8, 14, BINS).astype(np.float32)
    istd = numbers.uniform(0.2, 0.5, BINS).astype(np.float32)
    cmvn = variant.get("cmvn", "state")
    if cmvn != "state":
        # Sums, as training keeps them: mean = Σx / n, variance = Σx² / n - mean².
        count = 1000
        sums = mean.astype(np.float64) * count
        squares = (1.0 / istd.astype(np.float64) ** 2 + mean.astype(np.float64) ** 2) * count
        text = json.dumps({"mean_stat": sums.tolist(), "var_stat": squares.tolist(), "frame_num": count})
        (folder / "global_cmvn").write_text(text)
    model, config = make_model(variant, mean, istd, seed)
    with torch.no_grad():
        arrays = outputs(model, features, torch.Generator().manual_seed(seed + 1))
    state = {}
    for name, tensor in model.state_dict().items():
        if name.endswith(".pe") or (name.startswith("encoder.global_cmvn") and cmvn == "file"):
            continue
        narrow = tensor.is_floating_point() and "global_cmvn" not in name and not variant.get("float32")
        state[name] = tensor.half() if narrow else tensor.clone()
    state = {name: value for name, value in state.items()
             if variant.get("extras") or not name.endswith("num_batches_tracked")}
    if variant.get("extras"):
        d = config["encoder_conf"]["output_size"]
        state["encoder.embed.pos_enc.pe"] = torch.zeros(1, 8, d)
        state["decoder.left_decoder.embed.1.pe"] = torch.zeros(1, 8, d)
        state["decoder.right_decoder.embed.1.pe"] = torch.zeros(1, 8, d)
        for block in range(2):
            state[f"encoder.encoders.{block}.concat_linear.weight"] = torch.zeros(2, 4)
            state[f"encoder.encoders.{block}.concat_linear.bias"] = torch.zeros(2)
        for side in ("left", "right"):
            state[f"decoder.{side}_decoder.decoders.0.concat_linear1.weight"] = torch.zeros(2, 4)
            state[f"decoder.{side}_decoder.decoders.0.concat_linear2.weight"] = torch.zeros(2, 4)
    torch.save(state, folder / "final.pt")
    (folder / "train.yaml").write_text(yaml.safe_dump(config))
    special = ["<blank>", "<unk>"] if variant.get("old") else ["<blank>", "<unk>", "<sos/eos>"]
    letters = [chr(ord("a") + i) for i in range(UNITS - 3)]
    units = special + letters + (["<sos/eos>"] if variant.get("old") else [])
    (folder / "units.txt").write_text("".join(f"{unit} {i}\n" for i, unit in enumerate(units)))
    np.savez_compressed(folder / "golden.npz", **arrays)


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "tests/data/wenet"
    torch.set_num_threads(1)
    root.mkdir(parents=True, exist_ok=True)
    features = np.random.default_rng(1).normal(11, 3, (FRAMES, BINS)).astype(np.float16)
    np.savez_compressed(root / "features.npz", features=features)
    for seed, (name, variant) in enumerate(VARIANTS.items(), 100):
        write_variant(root / name, variant, seed, torch.from_numpy(features.astype(np.float32)))
        print(name)


if __name__ == "__main__":
    main()
