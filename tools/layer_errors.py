#!/usr/bin/env python3
"""Tables of what each layer loses, from reports of `oasr quantize --analyze --json`.

    tools/layer_errors.py REPORT.json… [--most N]

Markdown on standard output: for each report the kinds of layers by their median error, and the N layers with the
greatest effect on the model's output, with what stands out in their numbers.
"""

import argparse
import json
import re
import statistics
import sys
from pathlib import Path


def kind_of(path):
    """model.encoder.layers.0.self_attn.out_proj: encoder self_attn.out_proj."""
    found = re.fullmatch(r"(?:model\.)?(\w+)\.(?:\w+)\.\d+\.(.+)", path)
    return f"{found[1]} {found[2]}" if found else path


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def kinds(layers):
    groups = {}
    for layer in layers:
        groups.setdefault(kind_of(layer["path"]), []).append(layer)
    rows = []
    for name, members in groups.items():
        alone = [layer["alone"]["snr_db"] for layer in members]
        effects = [layer["effect"] for layer in members if layer["effect"] is not None]
        rows.append((-sum(effects), [name, str(len(members)), f"{statistics.median(alone):.1f}", f"{min(alone):.1f}",
                                     f"{1e6 * sum(effects):.0f}"]))
    return table(["kind", "layers", "median, dB", "least, dB", "sum of effects, 10⁻⁶ nats"],
                 [row for _, row in sorted(rows, key=lambda row: row[0])])


def worst(layers, most):
    rows = []
    for layer in sorted(layers, key=lambda layer: -(layer["effect"] or 0))[:most]:
        rows.append([f"`{layer['path']}`", f"{layer['alone']['snr_db']:.1f}", f"{layer['alone']['cosine']:.5f}", f"{1e6 * (layer['effect'] or 0):.0f}", layer["cause"]])
    return table(["layer", "alone, dB", "cosine", "effect, 10⁻⁶ nats", "what stands out"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reports", type=Path, nargs="+", metavar="REPORT.json")
    parser.add_argument("--most", type=int, default=10, metavar="N", help="layers that are shown (10)")
    arguments = parser.parse_args()
    for path in arguments.reports:
        report = json.loads(path.read_text(encoding="utf-8"))
        layers = [layer for layer in report["layers"] if layer["alone"] is not None]
        if not layers:
            sys.exit(f"{path}: no layer was analyzed (oasr quantize --analyze --json)")
        print(f"## {path.stem}\n\n{kinds(layers)}\n\n{worst(layers, arguments.most)}\n")


if __name__ == "__main__":
    main()
