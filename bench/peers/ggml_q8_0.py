#!/usr/bin/env python3
"""Quantizes a whisper.cpp model from f16 to q8_0, as its own tool does, where that is not at hand.

    ggml_q8_0.py ggml-base.bin ggml-base-q8_0.bin

q8_0: blocks of 32 values along a row, each an f16 scale d = max|x| / 127 and 32 int8 round(x / d).
Matrices are quantized; vectors, convolutions and positional embeddings stay as they are.
"""

import struct
import sys
from pathlib import Path

import numpy as np

F16, Q8_0 = 1, 8  # ggml's numbers of the types
FTYPE_Q8_0 = 7 + 2000  # "mostly q8_0", quantization version 2 in the thousands
KEPT = ("encoder.conv1.bias", "encoder.conv2.bias", "encoder.positional_embedding",
        "decoder.positional_embedding")


def quantize_rows(values):
    """[rows, columns] float32, columns a multiple of 32 -> the bytes of q8_0."""
    blocks = values.reshape(-1, 32)
    scale = np.abs(blocks).max(axis=1) / np.float32(127)
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
    scaled = blocks * inverse[:, None]
    rounded = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))  # roundf: halves away from 0
    out = np.empty(len(blocks), dtype=[("d", "<f2"), ("q", "i1", 32)])
    out["d"], out["q"] = scale, rounded
    return out.tobytes()


def convert(data):
    """The bytes of an f16 file -> the bytes of the q8_0 file."""
    header = list(struct.unpack_from("<12i", data))
    if header[0] != 0x67676D6C or header[11] != F16:
        sys.exit("the input is not a whisper.cpp file of f16")
    header[11] = FTYPE_Q8_0
    n_mel, n_fft = struct.unpack_from("<2i", data, 48)
    at = 56 + 4 * n_mel * n_fft
    (n_tokens,) = struct.unpack_from("<i", data, at)
    at += 4
    for _ in range(n_tokens):
        at += 4 + struct.unpack_from("<i", data, at)[0]
    out = [struct.pack("<12i", *header), data[48:at]]
    while at < len(data):
        start = at
        rank, name_length, kind = struct.unpack_from("<3i", data, at)
        shape = struct.unpack_from(f"<{rank}i", data, at + 12)
        at += 12 + 4 * rank
        name = data[at:at + name_length].decode()
        at += name_length
        count, size = int(np.prod(shape)), 2 if kind == F16 else 4
        if kind == F16 and rank == 2 and shape[0] % 32 == 0 and name not in KEPT:
            values = np.frombuffer(data, "<f2", count, at).astype(np.float32)
            head = struct.pack(f"<3i{rank}i", rank, name_length, Q8_0, *shape)
            out += [head, name.encode(), quantize_rows(values)]
        else:
            out.append(data[start:at + count * size])
        at += count * size
    return b"".join(out)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    Path(sys.argv[2]).write_bytes(convert(Path(sys.argv[1]).read_bytes()))


if __name__ == "__main__":
    main()
