"""--emit-onnx: the training graph is an ONNX model, whose helper ops are functions in plain ONNX ops. Read back by pipec as
any model, in infer mode, it gives the loss, the gradients and the updated parameters of the plan."""

import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, elements, floats, main, read_npz, relative_difference, write_npz

BATCH = 4
RATE = 1024  # a power of two, so large that of (p - p') / RATE nothing but the gradient is left


def values(descr, data):
    return floats(data, {"<f4": "F32", "<f8": "F64"}[descr])


class EmitOnnx(Case):
    def make(self, kind, *flags):
        path = self.folder / f"{kind}.onnx"
        self.run_tool("make-model", kind, *flags, "-o", path)
        return path

    def data(self, inputs):
        """inputs: name -> (dtype, shape, how many classes or tokens)."""
        r, arrays = random.Random(5), {}
        for name, (dtype, shape, kinds) in inputs.items():
            draw = (lambda: r.randrange(kinds)) if dtype == "int64" else (lambda: r.gauss(0, 1))
            arrays[name] = (dtype, shape, [draw() for _ in range(elements(shape))])
        path = self.folder / "data.npz"
        write_npz(path, arrays)
        return path

    def one_step(self, model, data, *flags, run_flags=()):
        """(metrics of one step of the plan, its parameters before and after, outputs of the emitted model)."""
        self.count += 1
        emitted = self.folder / f"emitted{self.count}"
        plan = self.compile(model, "--microbatches=1", f"--batch={BATCH}", f"--emit-onnx={emitted}", *flags)
        before = self.train(plan, data, steps=None, *("--steps=0",))
        after = self.train(plan, data, *run_flags, steps=1)
        again = self.compile(emitted / "model.onnx", "--mode=infer", "--stages=1", "--microbatches=1")
        outputs = self.folder / f"outputs{self.count}.npz"
        self.run_tool("piperun", again, f"--data={data}", f"--outputs={outputs}", "--threads=1")
        return json.loads(after.metrics.splitlines()[0]), before.tensors, after.tensors, read_npz(outputs), emitted

    def agree(self, model, data, *flags, stages=(1, 2), virtual=1):
        for count in stages:
            with self.subTest(model=model.name, stages=count, flags=flags):
                row, before, after, outputs, emitted = self.one_step(
                    model, data, f"--stages={count}", "--optimizer=sgd", *flags, run_flags=(f"--lr={RATE}",))
                self.assertAlmostEqual(values(*outputs["loss"][::2])[0] / row["loss"], 1, delta=1e-6)
                self.assertAlmostEqual(values(*outputs["gradient_norm"][::2])[0] / row["grad_norm"], 1, delta=1e-5)
                gradients = {name[5:]: value for name, value in outputs.items() if name.startswith("grad:")}
                self.assertGreater(len(gradients), 3)
                scale = row["grad_norm"] / len(gradients) ** 0.5
                for name, (descr, shape, bytes_) in gradients.items():
                    self.assertEqual(list(shape), list(before[name][1]), name)
                    old, new = floats(before[name][2]), floats(after[name][2])
                    want = [(a - b) / RATE for a, b in zip(old, new)]
                    got = values(descr, bytes_)
                    # Where a gradient is nothing but rounding, as that of a key's bias, its size is compared.
                    error = sum((a - b) ** 2 for a, b in zip(got, want)) ** 0.5
                    size = max(sum(b * b for b in want) ** 0.5, 1e-3 * scale)
                    self.assertLess(error / size, 3e-5, name)
                self.assertEqual(sorted(p.name for p in emitted.iterdir()),
                                 ["model.data", "model.onnx", *(f"stage_{k}.onnx" for k in range(count * virtual))])

    def test_mlp(self):
        model = self.make("mlp", "--layers=3", "--inputs=8", "--hidden=16", "--classes=5")
        self.agree(model, self.data({"x": ("float32", (BATCH, 8), 0), "labels": ("int64", (BATCH,), 5)}))

    def test_gpt_with_dropout(self):
        model = self.make("gpt", "--layers=2", "--hidden=16", "--heads=2", "--sequence=8", "--vocabulary=32", "--dropout=0.25")
        data = self.data({"input_ids": ("int64", (BATCH, 8), 32), "labels": ("int64", (BATCH, 8), 32)})
        self.agree(model, data, "--label-smoothing=0.1")
        self.agree(model, data, "--recompute=all", stages=(2,))
        self.agree(model, data, "--schedule=interleaved", "--virtual-stages=2", stages=(2,), virtual=2)

    def test_cnn(self):
        model = self.make("cnn", "--image=3x12x12", "--classes=5")
        self.agree(model, self.data({"x": ("float32", (BATCH, 3, 12, 12), 0), "labels": ("int64", (BATCH,), 5)}), stages=(2,))

    def test_lstm(self):
        model = self.make("lstm", "--layers=1", "--hidden=8", "--sequence=5", "--vocabulary=16")
        data = self.data({"input_ids": ("int64", (BATCH, 5), 16), "labels": ("int64", (BATCH, 5), 16)})
        self.agree(model, data, stages=(1,))

    def test_every_optimizer_updates_as_the_plan_does(self):
        model = self.make("mlp", "--layers=2", "--inputs=8", "--hidden=16", "--classes=5")
        data = self.data({"x": ("float32", (BATCH, 8), 0), "labels": ("int64", (BATCH,), 5)})
        for optimizer in ("sgd", "momentum", "nesterov", "adam", "adamw", "adagrad"):
            with self.subTest(optimizer=optimizer):
                _, before, after, outputs, _ = self.one_step(model, data, f"--optimizer={optimizer}", "--stages=1")
                for name in before:
                    descr, _, bytes_ = outputs[f"{name}.updated"]
                    moved = [b - a for a, b in zip(floats(before[name][2]), floats(after[name][2]))]
                    got = [b - a for a, b in zip(floats(before[name][2]), values(descr, bytes_))]
                    self.assertLess(relative_difference(got, moved), 1e-3, name)
                    self.assertLess(relative_difference(values(descr, bytes_), floats(after[name][2])), 1e-6, name)

    def test_inference(self):
        model = self.make("mlp", "--layers=2", "--inputs=8", "--hidden=16", "--classes=5")
        data = self.data({"x": ("float32", (BATCH, 8), 0)})
        emitted, outputs = self.folder / "emitted", self.folder / "outputs.npz"
        plan = self.compile(model, "--mode=infer", "--microbatches=1", f"--batch={BATCH}", f"--emit-onnx={emitted}")
        again = self.compile(emitted / "model.onnx", "--mode=infer", "--stages=1", "--microbatches=1")
        results = []
        for each in (plan, again):
            self.run_tool("piperun", each, f"--data={data}", f"--outputs={outputs}", "--threads=1")
            results.append(read_npz(outputs))
        self.assertEqual(results[0], results[1])

    def test_what_stands_in_the_directory_is_kept(self):
        model = self.make("mlp", "--layers=2", "--inputs=8", "--hidden=16", "--classes=5")
        emitted = self.folder / "emitted"
        self.compile(model, f"--emit-onnx={emitted}")
        self.compile(model, f"--emit-onnx={emitted}", "--stages=1")
        self.assertEqual(sorted(p.name for p in emitted.iterdir()), ["model.data", "model.onnx", "stage_0.onnx"])
        (emitted / "notes.txt").write_text("mine")
        refusal = self.compile(model, f"--emit-onnx={emitted}", expect=1)
        self.assertIn("holds 'notes.txt', which is no emitted model; name a new directory", refusal)


if __name__ == "__main__":
    main()
