"""Gelu, spelled out or not, and its gradient as parts of matrix products: the numbers are those of the parts, wherever the
model is cut."""

import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, floats, main, model_text, pipelines, read_npz, relative_difference, write_npz

WIDTH, BLOCKS, SAMPLES = 8, 4, 16
COMMON = ["--microbatches=4", "--batch=8"]
INSIDE = "--cut=h0,h1,h2"  # between the two products of a block


def op(name):
    return lambda p, h: [f"{h} = {name}({p})"]


TANH = op('Gelu <approximate = "tanh">')


def spelled_tanh(p, h):
    """As GPT-2 does."""
    return [f"{h}a = Pow({p}, three)", f"{h}b = Mul({h}a, cubic)", f"{h}c = Add({p}, {h}b)", f"{h}d = Mul({h}c, outer)",
            f"{h}e = Tanh({h}d)", f"{h}f = Add({h}e, one)", f"{h}g = Mul({p}, half)", f"{h} = Mul({h}g, {h}f)"]


def spelled_erf(p, h):
    """As PyTorch's exporter does below opset 20."""
    return [f"{h}a = Div({p}, root)", f"{h}b = Erf({h}a)", f"{h}c = Add({h}b, one)", f"{h}d = Mul({p}, {h}c)", f"{h} = Mul({h}d, half)"]


NUMBERS = {"half": 0.5, "one": 1, "three": 3, "cubic": 0.044715, "outer": 0.7978845834732056, "root": 1.4142135381698608}


def blocks(activation=TANH):
    """Transformers' feed-forward blocks, four times as wide inside."""
    weights, nodes = Weights(), []
    initializers = [f"float {name} = {{{number}}}" for name, number in NUMBERS.items()]
    for k in range(BLOCKS):
        initializers += [weights.tensor(f"w{k}", WIDTH, 4 * WIDTH), weights.tensor(f"b{k}", 4 * WIDTH),
                         weights.tensor(f"v{k}", 4 * WIDTH, WIDTH), weights.tensor(f"c{k}", WIDTH)]
        x = f"x{k}" if k else "x"
        nodes += [f"m{k} = MatMul({x}, w{k})", f"p{k} = Add(m{k}, b{k})", *activation(f"p{k}", f"h{k}"), f"n{k} = MatMul(h{k}, v{k})",
                  f"a{k} = Add(n{k}, c{k})", f"x{k + 1} = Add({x}, a{k})"]
    nodes[-1] = nodes[-1].replace(f"x{BLOCKS}", "y", 1)
    return model_text([f"float[N,{WIDTH}] x"], [f"float[N,{WIDTH}] y"], initializers, nodes)


class FusedGelu(Case):
    def data(self, first=None):
        values = Weights(5).random
        x = [values.gauss(0, 1) for _ in range(SAMPLES * WIDTH)]
        if first is not None:
            x[0] = first
        path = self.folder / "data.npz"
        write_npz(path, {"x": ("float32", (SAMPLES, WIDTH), x),
                         "labels": ("int64", (SAMPLES,), [values.randrange(WIDTH) for _ in range(SAMPLES)])})
        return path

    def fused(self, model, level, *flags):
        """How many products of the module have an activation."""
        return self.run_tool("pipec", model, "--dry-run", f"--print={level}", *flags).stdout.count('activation="GeluTanh')

    def outputs(self, model, data, *flags):
        self.count += 1
        out = self.folder / f"out{self.count}.npz"
        plan = self.compile(model, "--mode=infer", *COMMON, *flags)
        self.run_tool("piperun", plan, f"--data={data}", f"--outputs={out}", "--threads=1", "--timeout=20")
        return floats(read_npz(out)["y"][2])

    def test_training_is_the_same_wherever_the_cut_is(self):
        model, data = self.write("blocks.onnxtxt", blocks()), self.data()
        self.assertEqual(self.fused(model, "training"), BLOCKS)
        for precision in ("fp32", "bf16"):
            flags = [*COMMON, f"--precision={precision}"]
            reference = self.train(self.compile(model, "--stages=1", *flags), data)
            self.assertTrue(all(map(math.isfinite, reference.losses)))
            for schedule, how in [*pipelines(stages=4, microbatches=4), ("recompute", ["--stages=4", "--recompute=all"])]:
                for cut in ([], [INSIDE]) if precision == "fp32" else ([INSIDE],):
                    with self.subTest(precision=precision, schedule=schedule, cut=cut):
                        self.assert_same_run(self.train(self.compile(model, *how, *cut, *flags), data), reference, schedule)

    def test_training_is_that_of_the_parts(self):
        model, data = self.write("blocks.onnxtxt", blocks()), self.data()
        parts = ["--disable-pass=fuse-matmul-gelu-grad"]
        self.assertEqual(self.fused(model, "training", *parts), 0)
        runs = [self.train(self.compile(model, "--stages=2", *COMMON, *flags), data) for flags in (parts, [])]
        self.assert_same_run(runs[1], runs[0], "float32")

    def test_inference(self):
        model, data = self.write("blocks.onnxtxt", blocks()), self.data()
        self.assertEqual(self.fused(model, "model", "--mode=infer"), BLOCKS)
        whole = self.outputs(model, data, "--stages=1")
        for flags in (["--stages=4"], ["--stages=4", INSIDE], ["--stages=4", INSIDE.replace("h", "p")]):
            self.assertEqual(self.outputs(model, data, *flags), whole, flags)
        parts = self.outputs(model, data, "--stages=1", "--disable-pass=fuse-matmul-gelu")
        self.assertLess(relative_difference(whole, parts), 1e-6)

    def test_what_is_no_number_shows(self):
        data = self.data(first=math.nan)
        for name, activation in (("Gelu", TANH), ("Relu", op("Relu"))):
            model = self.write("blocks.onnxtxt", blocks(activation))
            y = self.outputs(model, data, "--stages=2")
            self.assertTrue(all(map(math.isnan, y[:WIDTH])), name)
            self.assertTrue(all(map(math.isfinite, y[WIDTH:])), name)

    def test_spelled_out(self):
        """Trains as what is written there, and keeps less for the backward pass."""
        data, parts = self.data(), "--disable-pass=fuse-gelu"
        for activation in (spelled_tanh, spelled_erf):
            model = self.write("spelled.onnxtxt", blocks(activation))
            written = self.run_tool("pipec", model, "--dry-run", "--print=training").stdout
            self.assertEqual((written.count(" = Gelu("), written.count("Tanh(") + written.count("Erf(")), (BLOCKS, 0))
            runs, peaks = [], []
            for flags in ([], [parts]):
                plan = self.compile(model, "--stages=1", *COMMON, *flags)
                runs.append(self.train(plan, data))
                report = json.loads(self.run_tool("pipec", model, "--stages=1", *COMMON, "--dry-run", "--json", *flags).stdout)
                peaks.append(report["peak_bytes"])
            self.assertLess(relative_difference(runs[0].losses, runs[1].losses), 1e-6)
            for name, (_, _, data_of) in runs[0].tensors.items():
                self.assertLess(relative_difference(floats(data_of), floats(runs[1].tensors[name][2])), 1e-4, name)
            self.assertLess(peaks[0], peaks[1])


if __name__ == "__main__":
    main()
