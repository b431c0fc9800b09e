"""Whole models in the ops of each opset from 7 to 27: the numbers that onnxruntime has for them, however they are cut."""

import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import ROOT, Case, elements, floats, main, read_npz, write_npz

DATA = ROOT / "tests/data/opsets"
OPSETS = range(7, 28)
TOLERANCE = 1e-5  # of the largest value of an output, or of 1


def opset_and_ir(model):
    """A model's opset of domain "" and IR version: the first field of ModelProto, and the last that onnx wrote."""
    blob = model.read_bytes()
    assert blob[0] == 0x08 and blob[-6:-1] == b"\x42\x04\x0a\x00\x10", model
    return blob[-1], blob[1]


class Opsets(Case):
    def compare(self, model, stages):
        plan = self.compile(model, "--mode=infer", f"--stages={stages}", "--microbatches=2", "--batch=4")
        out = self.folder / "out.npz"
        self.run_tool("piperun", plan, f"--data={model.with_suffix('.inputs.npz')}", f"--outputs={out}",
                      "--threads=1", "--timeout=30")
        got, wanted = read_npz(out), read_npz(model.with_suffix(".outputs.npz"))
        self.assertEqual(sorted(got), sorted(wanted))
        for name, (descr, shape, data) in wanted.items():
            self.assertEqual(got[name][:2], (descr, shape), name)
            ours, theirs = floats(got[name][2]), floats(data)
            scale = max(1, *map(abs, theirs))
            for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
                self.assertLessEqual(abs(a - b), TOLERANCE * scale, f"{name}[{i}]: {a}, onnxruntime {b}")

    def train_one(self, model):
        """One step, the same however the model is cut."""
        inputs, outputs = (read_npz(model.with_suffix(f".{kind}.npz")) for kind in ("inputs", "outputs"))
        shape = outputs["y0"][1]
        data = {name: ("float32", x[1], floats(x[2])) for name, x in inputs.items()}
        write_npz(self.folder / "data.npz", {**data, "labels": ("float32", shape, [0.5] * elements(shape))})
        flags = "--loss=mse", "--microbatches=2", "--batch=4"
        first, second = (self.train_plan(model, stages, *flags) for stages in (1, 2))
        self.assertTrue(math.isfinite(first.losses[0]))
        self.assert_same_run(second, first, "2 stages")

    def train_plan(self, model, stages, *flags):
        return self.train(self.compile(model, f"--stages={stages}", *flags), self.folder / "data.npz", steps=1)

    def test_every_opset_is_there(self):
        for opset in OPSETS:
            models = sorted(model.stem for model in (DATA / f"{opset:02}").glob("*.onnx"))
            self.assertGreaterEqual(set(models), {"mlp", "elementwise", "block", "shapes", "cnn", "scale", "recurrent"}, opset)
            for name in models:
                model = DATA / f"{opset:02}" / f"{name}.onnx"
                self.assertEqual(opset_and_ir(model)[0], opset, model)
        self.assertEqual({opset_and_ir(model)[1] for model in DATA.glob("*/*.onnx")}, set(range(3, 14)))


def add(model, stages):
    def test(self):
        self.compare(model, stages)

    setattr(Opsets, f"test_opset_{model.parent.name}_{model.stem}_{stages}", test)


def add_training(model):
    setattr(Opsets, f"test_opset_{model.parent.name}_{model.stem}_training", lambda self: self.train_one(model))


for path in sorted(DATA.glob("*/*.onnx")):
    for count in (1, 2):
        add(path, count)
    if path.stem in ("mlp", "block"):
        add_training(path)


if __name__ == "__main__":
    main()
