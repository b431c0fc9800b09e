"""Models in bfloat16 and float16, whole or between casts: computed in float32, trained with float32 masters, kept in the
model's own types. Each is held against the same model written in float32, its weights those that 16 bits leave."""

import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, elements, floats, main, read_npz, write_npz

WIDTH, HIDDEN, CLASSES, SAMPLES = 8, 12, 5, 16
CAST = {"bfloat16": 16, "float16": 10, "float": 1}


def bits(value, dtype):
    """The 16-bit float nearest to a number, ties to even, as an integer."""
    if dtype == "float16":
        return struct.unpack("<H", struct.pack("<e", value))[0]
    (word,) = struct.unpack("<I", struct.pack("<f", value))
    return (word + 0x7FFF + ((word >> 16) & 1)) >> 16


def number(code, dtype):
    if dtype == "float16":
        return struct.unpack("<e", struct.pack("<H", code))[0]
    return struct.unpack("<f", struct.pack("<I", code << 16))[0]


def rounded(data, dtype):
    values = floats(data)
    return struct.pack(f"<{len(values)}H", *(bits(value, dtype) for value in values))


class Model:
    """Two layers with a normalisation between them. `small` is the 16-bit type; None: float32, the reference."""

    SHAPES = {"w1": (WIDTH, HIDDEN), "b1": (HIDDEN,), "scale": (HIDDEN,), "shift": (HIDDEN,), "w2": (HIDDEN, CLASSES)}

    def __init__(self, dtype, inputs="float", casts_around_ops=False, external=None):
        """dtype: what the weights are rounded to. casts_around_ops: as autocast exports, with float32 weights."""
        random = Weights(3).random
        self.dtype, self.inputs, self.casts, self.external = dtype, inputs, casts_around_ops, external
        self.values = {name: [bits(random.uniform(-0.7, 0.7), dtype) for _ in range(elements(shape))]
                       for name, shape in self.SHAPES.items()}

    def initializer(self, name, dtype):
        dims, codes = ",".join(map(str, self.SHAPES[name])), self.values[name]
        if dtype == "float":
            return f"float[{dims}] {name} = {{{', '.join(repr(number(c, self.dtype)) for c in codes)}}}"
        if self.external is None:
            return f"{dtype}[{dims}] {name} = {{{', '.join(map(str, codes))}}}"
        with open(self.external, "ab") as file:
            offset = file.tell()
            file.write(struct.pack(f"<{len(codes)}H", *codes))
        return f'{dtype}[{dims}] {name} = ["location": "{self.external.name}", "offset": "{offset}", "length": "{2 * len(codes)}"]'

    def text(self, reference=False):
        small = "float" if reference or self.casts else self.dtype
        nodes = []

        def op(result, text, *operands, result_type=self.dtype):
            """With casts of what goes in and of what comes out, where the exporter writes them."""
            if not reference and self.casts:
                for k, operand in enumerate(operands):
                    nodes.append(f"{result}_in{k} = Cast<to = {CAST[self.dtype]}>({operand})")
                nodes.append(f"{result}_out = " + text.format(*(f"{result}_in{k}" for k in range(len(operands)))))
                nodes.append(f"{result} = Cast<to = 1>({result}_out)")
            else:
                nodes.append(f"{result} = " + text.format(*operands))

        x = "x"
        if not reference and not self.casts and self.inputs != self.dtype:
            nodes.append(f"xs = Cast<to = {CAST[self.dtype]}>(x)")
            x = "xs"
        op("m1", "MatMul({0}, {1})", x, "w1")
        op("a1", "Add({0}, {1})", "m1", "b1")
        op("n1", "LayerNormalization<axis = -1>({0}, {1}, {2})", "a1", "scale", "shift")
        op("t1", "Tanh({0})", "n1")
        op("y", "MatMul({0}, {1})", "t1", "w2")
        initializers = [self.initializer(name, small) for name in self.SHAPES]
        x_type = "float" if reference else self.inputs
        return (f'<ir_version: 10, opset_import: ["" : 21]>\nm ({x_type}[N,{WIDTH}] x) => ({small}[N,{CLASSES}] y)\n'
                f"<{', '.join(initializers)}>\n{{\n" + "\n".join(nodes) + "\n}\n")


class SmallFloats(Case):
    def setUp(self):
        super().setUp()
        random = Weights(8).random
        x = [random.randrange(-64, 65) / 64 for _ in range(SAMPLES * WIDTH)]  # exact in all types
        labels = ("int64", (SAMPLES,), [random.randrange(CLASSES) for _ in range(SAMPLES)])
        self.data = {}
        for dtype in ("float", "float16", "bfloat16"):
            self.data[dtype] = self.folder / f"{dtype}.npz"
            values = [bits(value, dtype) for value in x] if dtype == "bfloat16" else x
            write_npz(self.data[dtype], {"x": ("float32" if dtype == "float" else dtype, (SAMPLES, WIDTH), values), "labels": labels})

    def models(self):
        yield "bfloat16", Model("bfloat16")
        yield "float16", Model("float16")
        yield "float16 inputs", Model("float16", inputs="float16")
        yield "bfloat16 inputs", Model("bfloat16", inputs="bfloat16")
        yield "casts around every op", Model("bfloat16", casts_around_ops=True)
        yield "external", Model("bfloat16", external=self.folder / "weights.bin")

    def run_both(self, model, *flags, piperun=("--lr=0.05",)):
        """Losses and export of the float32 reference, and of the model at one and two ranks."""
        common = ["--microbatches=4", "--batch=8", *flags]
        data = self.data[model.inputs]
        reference = self.compile(self.write("reference.onnxtxt", model.text(reference=True)), "--stages=1", *common)
        path = self.write("model.onnxtxt", model.text())
        links = ["--parameters=link"] if model.external else []
        plans = [self.compile(path, *common, *more) for more in
                 (["--stages=1"], ["--stages=2"], ["--stages=2", "--schedule=gpipe", *links])]
        run = self.train(reference, self.data["float"], *piperun)
        return run, [self.train(plan, data, *piperun) for plan in plans]

    def test_trains_like_float32(self):
        for what, model in self.models():
            with self.subTest(what):
                reference, runs = self.run_both(model, piperun=("--lr=0.05", "--epochs=3"))
                self.assertEqual(len(reference.losses), 6)
                for run in runs:
                    self.assertEqual(run.metrics, reference.metrics)
                    self.assertEqual(run.export, runs[0].export)
                kept = "F32" if model.casts else {"bfloat16": "BF16", "float16": "F16"}[model.dtype]
                for name, (dtype, shape, data) in runs[0].tensors.items():
                    self.assertEqual((dtype, shape), (kept, list(Model.SHAPES[name])))
                    masters = reference.tensors[name][2]
                    self.assertEqual(data, masters if model.casts else rounded(masters, model.dtype))

    def test_trains_in_its_own_type(self):
        for what, model in self.models():
            with self.subTest(what):
                flags = ["--precision=" + {"bfloat16": "bf16", "float16": "fp16"}[model.dtype], "--microbatches=4", "--batch=8"]
                reference, _ = self.run_both(model, piperun=("--lr=0.05", "--epochs=3"))
                path = self.write("model.onnxtxt", model.text())
                runs = [self.train(self.compile(path, f"--stages={stages}", *flags), self.data[model.inputs], "--lr=0.05", "--epochs=3")
                        for stages in (1, 2)]
                self.assert_same_run(runs[1], runs[0], what)
                self.assertNotEqual(runs[0].losses, reference.losses)
                for got, want in zip(runs[0].losses, reference.losses, strict=True):
                    self.assertLess(abs(got - want), 5e-2 * want)
                kept = "F32" if model.casts else {"bfloat16": "BF16", "float16": "F16"}[model.dtype]
                self.assertEqual({dtype for dtype, _, _ in runs[0].tensors.values()}, {kept})

    def test_updates_too_small_for_16_bits_are_kept(self):
        for optimizer, rate in (("sgd", "1e-5"), ("adamw", "1e-6")):
            model = Model("bfloat16")
            reference, runs = self.run_both(model, f"--optimizer={optimizer}",
                                            piperun=(f"--lr={rate}", "--weight-decay=0", "--epochs=5"))
            self.assertGreater(reference.losses[0], reference.losses[-2])  # the same half of the data
            for run in runs:
                self.assertEqual(run.metrics, reference.metrics)
                for name, (_, _, data) in run.tensors.items():
                    # Too small indeed: rounded, the weights are where they were.
                    self.assertEqual(data, struct.pack(f"<{len(model.values[name])}H", *model.values[name]))

    def test_infers_in_the_declared_types(self):
        for what, model in self.models():
            with self.subTest(what):
                data = self.data[model.inputs]
                results = []
                for text, values, stages in ((model.text(reference=True), self.data["float"], 1), (model.text(), data, 1),
                                             (model.text(), data, 3)):
                    plan = self.compile(self.write("m.onnxtxt", text), "--mode=infer", f"--stages={stages}", "--microbatches=2")
                    out = self.folder / "out.npz"
                    self.run_tool("piperun", plan, f"--data={values}", f"--outputs={out}", "--threads=1")
                    results.append(read_npz(out)["y"])
                descr = "<f4" if model.casts else {"bfloat16": "<V2", "float16": "<f2"}[model.dtype]
                wanted = results[0][2] if model.casts else rounded(results[0][2], model.dtype)
                for result in results[1:]:
                    self.assertEqual(result, (descr, (SAMPLES, CLASSES), wanted))

    def test_an_export_is_a_model_again(self):
        model = Model("float16")
        plan = self.compile(self.write("m.onnxtxt", model.text()), "--microbatches=2", "--batch=8")
        export = self.folder / "export"
        self.run_tool("piperun", plan, f"--data={self.data['float']}", f"--export={export}", "--lr=0.1")
        again = self.compile(export / "model.onnx", "--microbatches=2", "--batch=8")
        run = self.train(again, self.data["float"], "--lr=0")
        self.assertEqual(run.export, (export / "model.safetensors").read_bytes())

    def test_synthetic_data_in_16_bits(self):
        for inputs in ("float16", "bfloat16"):
            plan = self.compile(self.write("m.onnxtxt", Model(inputs, inputs=inputs).text()), "--mode=infer", "--stages=1")
            self.run_tool("piperun", plan, "--data=synthetic", "--epochs=1")


if __name__ == "__main__":
    main()
