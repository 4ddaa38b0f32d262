#!/usr/bin/env python3
"""Quantizes a whisper.cpp model from f16 to q8_0, q4_0 or q4_k, as its own tool does, where that is not at hand.

    ggml_quantize.py q8_0 ggml-base.bin ggml-base-q8_0.bin

Blocks of 32 values along a row. q8_0: an f16 scale d = max|x| / 127 and 32 int8 round(x / d). q4_0: an f16 scale
d = x / -8 of the x with the greatest magnitude, and 32 codes floor(x / d + 8.5), at most 15, of which the first 16 are
the low nibbles of 16 bytes. q4_k: blocks of 256, written by ggml's own quantize_q4_K in the library that
pywhispercpp brings; every matrix has to have a multiple of 256 columns (base has, tiny has not).
Matrices are quantized; vectors, convolutions and positional embeddings stay as they are.
"""

import ctypes
import importlib.util
import struct
import sys
from pathlib import Path

import numpy as np

F16 = 1  # ggml's number of the type
KEPT = ("encoder.conv1.bias", "encoder.conv2.bias", "encoder.positional_embedding",
        "decoder.positional_embedding")


def to_q8_0(values):
    """[rows, columns] float32, columns a multiple of 32 -> the bytes of q8_0."""
    blocks = values.reshape(-1, 32)
    scale = np.abs(blocks).max(axis=1) / np.float32(127)
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
    scaled = blocks * inverse[:, None]
    rounded = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))  # roundf: halves away from 0
    out = np.empty(len(blocks), dtype=[("d", "<f2"), ("q", "i1", 32)])
    out["d"], out["q"] = scale, rounded
    return out.tobytes()


def to_q4_0(values):
    """Likewise of q4_0."""
    blocks = values.reshape(-1, 32)
    greatest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=1)[:, None], axis=1)[:, 0]
    scale = greatest / np.float32(-8)
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale != 0)
    codes = np.minimum(np.trunc(blocks * inverse[:, None] + np.float32(8.5)), 15).astype(np.uint8)
    out = np.empty(len(blocks), dtype=[("d", "<f2"), ("q", "u1", 16)])
    out["d"], out["q"] = scale, codes[:, :16] | codes[:, 16:] << 4
    return out.tobytes()


def ggml_base():
    """ggml's library of formats, beside the extension module of pywhispercpp."""
    found = importlib.util.find_spec("_pywhispercpp")
    libraries = sorted(Path(found.origin).parent.glob("libggml-base.so*")) if found else []
    if not libraries:
        sys.exit("q4_k needs pywhispercpp with its libggml-base.so in this Python")
    return ctypes.CDLL(str(libraries[0]))


def to_q4_k(values):
    """Likewise of q4_k, columns a multiple of 256: 144 bytes for 256 values."""
    rows, columns = values.shape
    if columns % 256:
        sys.exit(f"a matrix of {columns} columns has no q4_k: it takes multiples of 256")
    quantize = ggml_base().quantize_q4_K
    quantize.restype = ctypes.c_size_t
    quantize.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    values = np.ascontiguousarray(values, dtype=np.float32)
    out = np.empty(rows * columns // 256 * 144, dtype=np.uint8)
    written = quantize(values.ctypes.data, out.ctypes.data, rows, columns, None)
    if written != out.size:
        sys.exit(f"ggml wrote {written} bytes of q4_k instead of {out.size}")
    return out.tobytes()


# name -> (ggml's number of the type, "mostly" that type with quantization version 2 in the thousands, the bytes of rows)
TYPES = {"q8_0": (8, 7 + 2000, to_q8_0), "q4_0": (2, 2 + 2000, to_q4_0),
         "q4_k": (12, 12 + 2000, to_q4_k)}


def convert(data, wanted):
    """The bytes of an f16 file -> the bytes of the quantized file."""
    number, ftype, quantize_rows = TYPES[wanted]
    header = list(struct.unpack_from("<12i", data))
    if header[0] != 0x67676D6C or header[11] != F16:
        sys.exit("the input is not a whisper.cpp file of f16")
    header[11] = ftype
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
            head = struct.pack(f"<3i{rank}i", rank, name_length, number, *shape)
            out += [head, name.encode(), quantize_rows(values.reshape(-1, shape[0]))]
        else:
            out.append(data[start:at + count * size])
        at += count * size
    return b"".join(out)


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in TYPES:
        sys.exit(__doc__)
    Path(sys.argv[3]).write_bytes(convert(Path(sys.argv[2]).read_bytes(), sys.argv[1]))


if __name__ == "__main__":
    main()
