"""--precision: what bf16 and fp16 compute, keep, send and export."""

import json
import math
import pathlib
import re
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, floats, main, model_text, read_npz, schedules, write_npz

MODELS = {
    "mlp": ["mlp", "--layers=5", "--inputs=16", "--hidden=32", "--classes=4"],
    "gpt": ["gpt", "--layers=4", "--hidden=32", "--heads=4", "--sequence=16", "--vocabulary=16", "--dropout=0.1"],
}
RATES = {"mlp": 0.003, "gpt": 0.004}
BATCH, STEPS = 16, 20
COMMON = ["--microbatches=8", f"--batch={BATCH}"]
PRECISIONS = ("bf16", "fp16")


def convolutions():
    """Two of 3x3 on images that have become 1x1: of the second one's weights only the middle ones meet data."""
    w = Weights(3)
    initializers = [w.tensor("w0", 8, 3, 3, 3), w.tensor("w1", 8, 8, 3, 3), w.tensor("w2", 4, 8)]
    nodes = ["c0 = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(x, w0)", "h0 = Relu(c0)",
             "c1 = Conv<pads = [1, 1, 1, 1]>(h0, w1)", "h1 = Tanh(c1)", "f = Flatten(h1)",
             "y = Gemm<transB = 1>(f, w2)"]
    return model_text(["float[N,3,2,2] x"], ["float[N,4] y"], initializers, nodes)


class Precision(Case):
    def test_weights_that_meet_padding_only_stay(self):
        model, data, values = self.write("convolutions.onnxtxt", convolutions()), self.folder / "images.npz", Weights(5).random
        write_npz(data, {"x": ("float32", (BATCH, 3, 2, 2), [values.gauss(0, 1) for _ in range(BATCH * 12)]),
                         "labels": ("int64", (BATCH,), [values.randrange(4) for _ in range(BATCH)])})
        start = self.train(self.compile(model, "--stages=1", *COMMON), data, "--lr=0").tensors["w1"][2]
        idle = [k for k in range(8 * 8 * 9) if k % 9 != 4]
        for precision in PRECISIONS:
            runs = []
            for stages in (1, 2):
                for schedule in schedules(stages, microbatches=8):
                    flags = [f"--stages={stages}", f"--schedule={schedule}", "--optimizer=sgd", f"--precision={precision}"]
                    runs.append(self.train(self.compile(model, *flags, *COMMON), data, "--epochs=3", "--lr=1"))
                    self.assert_same_run(runs[-1], runs[0], f"{precision} {schedule}")
            before, after = floats(start), floats(runs[0].tensors["w1"][2])
            self.assertEqual([before[k] for k in idle], [after[k] for k in idle], precision)
            self.assertNotEqual(before, after)

    def model(self, kind):
        path = self.folder / f"{kind}.onnx"
        self.run_tool("make-model", *MODELS[kind], "--batch=symbolic", "--seed=1", "-o", path)
        return path

    def data(self, kind, samples=BATCH):
        """One batch that can be learned; every step sees it."""
        random, path = Weights(7).random, self.folder / f"{kind}.npz"
        if kind == "gpt":
            rows = [[(start + k * step) % 16 for k in range(17)] for start, step in
                    ((random.randrange(16), random.randrange(1, 4)) for _ in range(samples))]
            write_npz(path, {"input_ids": ("int64", (samples, 16), [t for row in rows for t in row[:-1]]),
                             "labels": ("int64", (samples, 16), [t for row in rows for t in row[1:]])})
        else:
            labels = [random.randrange(4) for _ in range(samples)]
            x = [random.gauss(0, 1) + (k % 4 == label) for label in labels for k in range(16)]
            write_npz(path, {"x": ("float32", (samples, 16), x), "labels": ("int64", (samples,), labels)})
        return path

    def test_losses_follow_those_of_fp32(self):
        for kind in MODELS:
            model, data = self.model(kind), self.data(kind)
            flags = [f"--epochs={STEPS}", f"--lr={RATES[kind]}"]
            reference = self.train(self.compile(model, "--stages=1", *COMMON), data, *flags)
            self.assertLess(reference.losses[-1], 0.8 * reference.losses[0])
            for precision in PRECISIONS:
                with self.subTest(model=kind, precision=precision):
                    run = self.train(self.compile(model, "--stages=1", f"--precision={precision}", *COMMON), data, *flags)
                    self.assertEqual(len(run.losses), STEPS)
                    self.assertNotEqual(run.losses, reference.losses)
                    for got, want in zip(run.losses, reference.losses):
                        self.assertLess(abs(got - want), 2e-2 * want)
                    # Masters: parameters of any size, not those that 16 bits hold.
                    for name, (dtype, _, data_) in run.tensors.items():
                        self.assertEqual(dtype, "F32", name)
                    words = struct.unpack(f"<{len(run.export) // 4}I", run.export[: len(run.export) // 4 * 4])
                    self.assertGreater(sum(1 for w in words if w & 0x1FFF), len(words) // 2)

    def test_the_same_numbers_however_cut(self):
        for kind in MODELS:
            model, data = self.model(kind), self.data(kind)
            flags = ["--epochs=4", "--lr=0.01", "--clip-norm=1", "--seed=3"]
            for precision in PRECISIONS:
                common = [f"--precision={precision}", *COMMON]
                reference = self.train(self.compile(model, "--stages=1", *common), data, *flags)
                self.assertEqual(len(set(reference.losses)), 4)
                for schedule in schedules():
                    for stages in (1, 2, 4):
                        with self.subTest(model=kind, precision=precision, schedule=schedule, stages=stages):
                            plan = self.compile(model, f"--stages={stages}", f"--schedule={schedule}", *common)
                            self.assert_same_run(self.train(plan, data, *flags), reference, f"{schedule} P={stages}")
                plan = self.compile(model, "--stages=2", "--recompute=all", *common)
                self.assert_same_run(self.train(plan, data, *flags), reference, "recompute")

    def test_adaptations_of_low_rank(self):
        model, data = self.model("gpt"), self.data("gpt")
        for precision in PRECISIONS:
            common = [f"--precision={precision}", "--lora=c_(attn|fc).weight:4", *COMMON]
            runs = [self.train(self.compile(model, f"--stages={stages}", *common), data, "--epochs=8", "--lr=0.01") for stages in (1, 2)]
            self.assert_same_run(runs[1], runs[0], precision)
            self.assertLess(runs[0].losses[-1], 0.95 * runs[0].losses[0])

    def test_activations_and_messages_take_half(self):
        flags = ["--stages=2", "--schedule=gpipe", "--microbatches=8", "--batch=512"]
        for kind in MODELS:
            model, kept, sent = self.model(kind), {}, {}
            for precision in ("fp32", "bf16"):
                given = [*flags, f"--precision={precision}"]
                planned = self.run_tool("pipec", model, *given, "--dry-run", "--print=planned").stdout
                # When most is live.
                kept[precision] = sum(map(int, re.findall(r"^memory rank \d+: .*, activation (\d+)", planned, re.M)))
                report = json.loads(self.run_tool("pipec", model, *given, "--dry-run", "--json").stdout)
                sent[precision] = sum(row["sent_bytes"] for row in report["stages"])
                self.assertEqual(report["precision"], {"fp32": "float32", "bf16": "bfloat16"}[precision])
                if precision == "bf16":
                    self.assertTrue(any("bfloat16 (--precision)" in note for note in report["notes"]), report["notes"])
            with self.subTest(model=kind):
                self.assertGreater(sent["fp32"], 0)
                self.assertEqual(sent["fp32"], 2 * sent["bf16"])
                self.assertLess(kept["bf16"], 0.6 * kept["fp32"])
                self.assertGreater(kept["bf16"], 0.4 * kept["fp32"])

    def test_weights_are_cast_once_a_step(self):
        profile = self.folder / "profile.json"
        plan = self.compile(self.model("mlp"), "--stages=2", "--precision=bf16", *COMMON)
        self.run_tool("piperun", plan, f"--data={self.data('mlp')}", "--steps=3", f"--profile={profile}")
        runs = {row["name"]: row["runs"] for row in json.loads(profile.read_text())["nodes"] if row["kind"] == "F"}
        casts = [name for name in runs if name.endswith("weight/bfloat16")]
        self.assertEqual(len(casts), 5)
        # The first weight has no gradient to hand on, so its cast does not last.
        self.assertEqual([runs[name] for name in sorted(casts)], [3 * 8, 3, 3, 3, 3])
        self.assertEqual(runs["logits/float32"], 3 * 8)

    def test_inference_keeps_the_types_of_the_outputs(self):
        model, outputs = self.model("mlp"), {}
        for precision in ("fp32", *PRECISIONS):
            plan = self.compile(model, "--mode=infer", "--stages=2", "--microbatches=2", "--batch=8", f"--precision={precision}")
            path = self.folder / f"{precision}.npz"
            self.run_tool("piperun", plan, f"--data={self.data('mlp')}", f"--outputs={path}")
            descr, _, data = read_npz(path)["logits"]
            self.assertEqual(descr, "<f4")
            outputs[precision] = floats(data)
        size = max(map(abs, outputs["fp32"]))
        for precision, least in (("bf16", 2**-9), ("fp16", 2**-12)):
            off = max(abs(a - b) for a, b in zip(outputs[precision], outputs["fp32"]))
            self.assertLess(off, 16 * least * size)
            self.assertGreater(off, least * size / 64)

    def test_what_overflows_or_rounds_away_stays_float32(self):
        """exp of 12 is no float16, and 1000 squares of 1 added one by one in bfloat16 stop at 256."""
        model = self.write("wide.onnxtxt", model_text(
            ["float[N,1000] x"], ["float[N,1] e", "float[N,1] s"], ["int64[1] axes = {1}"],
            ["r = Relu(x)", "w = Exp(r)", "t = ReduceMean(w, axes)", "e = Log(t)", "two = Constant<value_float = 2.0>()",
             "q = Pow(r, two)", "s = ReduceSum(q, axes)"]))
        data = self.folder / "wide.npz"
        write_npz(data, {"x": ("float32", (2, 1000), [12.0] * 1000 + [1.0] * 1000)})
        for precision in PRECISIONS:
            plan = self.compile(model, "--mode=infer", "--stages=1", "--microbatches=1", "--batch=2", f"--precision={precision}")
            path = self.folder / "wide-out.npz"
            self.run_tool("piperun", plan, f"--data={data}", f"--outputs={path}")
            arrays = read_npz(path)
            for got, want in zip(floats(arrays["e"][2]), (12.0, 1.0)):
                self.assertTrue(math.isclose(got, want, rel_tol=1e-5), (precision, got, want))
            for got, want in zip(floats(arrays["s"][2]), (144000.0, 1000.0)):
                self.assertTrue(math.isclose(got, want, rel_tol=1e-5), (precision, got, want))


if __name__ == "__main__":
    main()
