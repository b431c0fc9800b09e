"""Writes tests/data/trained_models: inputs for the models that tools/setup.sh fetches, and what onnxruntime makes of them. Needs
onnxruntime and numpy:

    python3 tests/reference/make_trained_models.py

silero-vad hears a signal in windows, each with the last samples of the one before in front, and carries its state from one to
the next. magika reads the first and last 1024 bytes of a file's contents, stripped; 256 stands for no byte. Every content here
is long and varied: magika normalizes over positions, and where these are nearly equal (a file of 20 bytes, or one line again and
again) it divides by differences of float32 sums. onnxruntime's scores are then as much as 1e-3 away from those of float64, and
ours 5e-4.
"""

import json
import os
import pathlib
import random
import struct
import sys
import zlib

import numpy as np
import onnxruntime

TARGET = pathlib.Path(__file__).resolve().parents[1] / "data" / "trained_models"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import CACHE

SILERO, MAGIKA = CACHE / "silero-vad-6.2.3/silero_vad.onnx", CACHE / "magika-1.0.3"
WINDOWS, STREAMS = 8, 4


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def voice(rate, samples, pitch):
    """Something like vowels: a buzz whose pitch moves, through resonances that move from one vowel's to the next's."""
    t = np.arange(samples) / rate
    phase = 2 * np.pi * np.cumsum(pitch * (1 + 0.08 * np.sin(2 * np.pi * 3 * t))) / rate
    vowels = np.array([[730, 1090, 2440], [270, 2290, 3010], [570, 840, 2410], [530, 1840, 2480]], float)
    at = np.clip(t * 8, 0, len(vowels) - 1.001)
    low, part = at.astype(int), (at % 1)[:, None]
    formants = vowels[low] * (1 - part) + vowels[np.minimum(low + 1, len(vowels) - 1)] * part
    signal = np.zeros(samples)
    for harmonic in range(1, int(rate / 2 / (pitch * 1.1))):
        gain = sum(1 / (1 + ((harmonic * pitch - formants[:, k]) / (60 + 30 * k)) ** 2) for k in range(3))
        signal += gain / harmonic**0.5 * np.sin(harmonic * phase)
    noise = np.random.default_rng(1).standard_normal(samples) * 0.002
    return (0.3 * signal / np.abs(signal).max() * (t > 0.07) + noise).astype(np.float32)


def silero():
    model = session(SILERO)
    for rate, window, context in ((16000, 512, 64), (8000, 256, 32)):
        audio = np.stack([voice(rate, WINDOWS * window, pitch) for pitch in (110, 140, 190, 230)])
        padded = np.pad(audio, ((0, 0), (context, 0)))
        inputs = np.stack([padded[:, k * window : (k + 1) * window + context] for k in range(WINDOWS)])
        state, outputs, states = np.zeros((2, STREAMS, 128), np.float32), [], []
        for x in inputs:
            output, state = model.run(None, {"input": x, "state": state, "sr": np.array(rate, np.int64)})
            outputs.append(output)
            states.append(state)
        np.savez_compressed(TARGET / f"silero-{rate}.inputs.npz", input=inputs, sr=np.array(rate, np.int64))
        np.savez_compressed(TARGET / f"silero-{rate}.outputs.npz", output=np.stack(outputs), stateN=np.stack(states))
        print(rate, np.stack(outputs)[:, :, 0].round(3).tolist())


def samples():
    """One file's contents per kind; in those of text nothing but the kind is worth reading."""
    lines = random.Random(2)
    word = lambda: "".join(lines.choice("aeioulnrst") for _ in range(lines.randrange(2, 9)))
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in ((b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 0, 0, 0, 0)),
                           (b"IDAT", zlib.compress(bytes(lines.randrange(256) for _ in range(65 * 64)))), (b"IEND", b"")))
    return {
        "python": b"import sys\n\n\n" + b"".join(
            f"def {word()}({word()}):\n    for line in sys.stdin:\n        print(line.strip())\n\n\n".encode() for _ in range(12)),
        "shell": b"#!/bin/bash\nset -eu\n" + b"".join(
            f'if [ -f "${word()}" ]; then\n  rm -f "${word()}"\nelse\n  echo {word()} >&2\nfi\n'.encode() for _ in range(15)),
        "json": json.dumps([{"name": word(), "values": [lines.random() for _ in range(4)]} for _ in range(40)], indent=2).encode(),
        "csv": "\n".join(["name,width,height,kind"] + [f"{word()},{lines.random():.3f},{lines.randrange(99)},{word()}"
                                                       for _ in range(80)]).encode(),
        "c": b"#include <stdio.h>\n\nint main(int argc, char **argv) {\n" + b"".join(
            f'  if (argc > {i}) printf("%s\\n", argv[{i}]);\n'.encode() for i in range(30)) + b"  return 0;\n}\n",
        "html": f"<!DOCTYPE html>\n<html><head><title>{word()}</title></head><body>\n".encode() + b"".join(
            f"<p class=\"{word()}\">{word()} <a href=\"/{word()}\">{word()}</a></p>\n".encode() for _ in range(30)) + b"</body></html>\n",
        "png": png,
        "xml": b'<?xml version="1.0" encoding="UTF-8"?>\n<list>\n' + b"".join(
            f'  <item id="{lines.randrange(999)}"><name>{word()}</name></item>\n'.encode() for _ in range(8)) + b"</list>\n",
    }


def features(content):
    """magika 1.0: begin and end of the stripped contents, 1024 numbers each."""
    begin, end = content[:4096].lstrip()[:1024], content[-4096:].rstrip()[-1024:]
    return list(begin) + [256] * (1024 - len(begin)) + [256] * (1024 - len(end)) + list(end)


def magika():
    labels = json.loads((MAGIKA / "config.min.json").read_text())["target_labels_space"]
    contents = samples()
    data = np.array([features(content) for content in contents.values()], np.int32)
    (scores,) = session(MAGIKA / "model.onnx").run(None, {"bytes": data})
    np.savez_compressed(TARGET / "magika.inputs.npz", bytes=data)
    np.savez_compressed(TARGET / "magika.outputs.npz", target_label=scores)
    print([(name, labels[row.argmax()], float(row.max().round(3))) for name, row in zip(contents, scores)])


if __name__ == "__main__":
    TARGET.mkdir(exist_ok=True)
    silero()
    magika()
