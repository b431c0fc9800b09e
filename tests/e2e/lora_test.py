"""Fine-tuning: a frozen body costs no backward pass; --lora learns a product of low rank beside each weight, and the export
has it merged."""

import json
import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, floats, main, model_text, read_safetensors, relative_difference, schedules, write_npz

BATCH, INPUTS, HIDDEN, OUTPUTS, RATE = 8, 6, 5, 4, 0.1


def rows(flat, columns):
    return [list(flat[i : i + columns]) for i in range(0, len(flat), columns)]


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def flat(matrix):
    return [value for row in matrix for value in row]


class FineTuning(Case):
    def setUp(self):
        super().setUp()
        self.random = random.Random(3)
        self.w1, self.w2 = self.matrix(INPUTS, HIDDEN), self.matrix(OUTPUTS, HIDDEN)  # w2 [out, in], as PyTorch has it
        self.x, self.labels = self.matrix(BATCH, INPUTS), self.matrix(BATCH, OUTPUTS)
        text = lambda name, m: f"float[{len(m)},{len(m[0])}] {name} = {{{', '.join(map(str, flat(m)))}}}"
        bias = ", ".join("0.5" for _ in range(OUTPUTS))
        self.model = self.write("model.onnxtxt", model_text(
            [f"float[N,{INPUTS}] x"], [f"float[N,{OUTPUTS}] y"],
            [text("w1", self.w1), text("w2", self.w2), f"float[{OUTPUTS}] b = {{{bias}}}"],
            ["h = MatMul(x, w1)", "y = Gemm<transB = 1>(h, w2, b)"]))
        write_npz(self.folder / "data.npz", {"x": ("float32", (BATCH, INPUTS), flat(self.x)),
                                             "labels": ("float32", (BATCH, OUTPUTS), flat(self.labels))})
        self.flags = ("--loss=mse", "--optimizer=sgd", f"--batch={BATCH}", "--microbatches=2")

    def matrix(self, m, n):
        return [[round(self.random.gauss(0, 1), 3) for _ in range(n)] for _ in range(m)]

    def run_plan(self, plan, steps, *flags):
        return self.train(plan, self.folder / "data.npz", f"--lr={RATE}", *flags, *([] if steps else ["--steps=0"]), steps=steps)

    def test_one_step_is_the_formula_and_the_export_is_merged(self):
        """B starts at zero, so a first step moves B alone: by the gradient of the product's other side."""
        plan = self.compile(self.model, "--stages=1", "--lora=^w:2", *self.flags)
        start = {name: rows(floats(t[2]), t[1][-1]) for name, t in read_safetensors(plan / "parameters/model.safetensors").items()
                 if len(t[1]) == 2}
        self.assertEqual({name: (len(m), len(m[0])) for name, m in start.items()},
                         {"w1": (INPUTS, HIDDEN), "w2": (OUTPUTS, HIDDEN), "w1.lora_A": (INPUTS, 2), "w1.lora_B": (2, HIDDEN),
                          "w2.lora_A": (HIDDEN, 2), "w2.lora_B": (2, OUTPUTS)})
        for name, fan_in in (("w1", INPUTS), ("w2", HIDDEN)):
            self.assertEqual(set(flat(start[f"{name}.lora_B"])), {0.0})
            self.assertLessEqual(max(map(abs, flat(start[f"{name}.lora_A"]))), fan_in ** -0.5)
            self.assertGreater(len(set(flat(start[f"{name}.lora_A"]))), 5)
        run = self.run_plan(plan, 1)
        h = product(self.x, self.w1)
        y = [[v + 0.5 for v in row] for row in product(h, list(zip(*self.w2)))]
        d = [[2 * (a - b) / (BATCH * OUTPUTS) for a, b in zip(*pair)] for pair in zip(y, self.labels)]
        self.assertAlmostEqual(run.losses[0], sum((a - b) ** 2 for a, b in zip(flat(y), flat(self.labels))) / (BATCH * OUTPUTS),
                               delta=1e-5)
        def moved(x, a, d):
            b = [[-RATE * v for v in row] for row in product(list(zip(*product(x, a))), d)]
            return product(a, b)
        change1 = moved(self.x, start["w1.lora_A"], product(d, self.w2))
        change2 = moved(h, start["w2.lora_A"], d)
        want1 = [a + b for a, b in zip(flat(self.w1), flat(change1))]
        want2 = [a + b for a, b in zip(flat(self.w2), flat(list(zip(*change2))))]
        self.assertEqual(set(run.tensors), {"w1", "w2", "b"})
        self.assertLess(relative_difference(floats(run.tensors["w1"][2]), want1), 1e-6)
        self.assertLess(relative_difference(floats(run.tensors["w2"][2]), want2), 1e-6)
        self.assertEqual(set(floats(run.tensors["b"][2])), {0.5})

    def test_the_export_computes_what_the_plan_does(self):
        data = f"--eval-data={self.folder / 'data.npz'}"
        ends = []
        for stages in (1, 2):
            plan = self.compile(self.model, f"--stages={stages}", "--lora=w1:1", "--lora=w2:3", *self.flags)
            export = self.folder / f"export{stages}"
            done = self.run_tool("piperun", plan, f"--data={self.folder / 'data.npz'}", data, "--epochs=20", "--lr=0.01",
                                 f"--export={export}", "--json", "--threads=1")
            first, *_, last = json.loads(done.stdout)["evaluations"]
            self.assertLess(last["loss"], 0.9 * first["loss"])
            merged = self.compile(export / "model.onnx", "--stages=1", *self.flags)
            again = self.run_tool("piperun", merged, f"--data={self.folder / 'data.npz'}", data, "--steps=0", "--json")
            self.assertAlmostEqual(json.loads(again.stdout)["evaluations"][0]["loss"] / last["loss"], 1, delta=1e-5)
            ends.append((export / "model.safetensors").read_bytes())
        self.assertEqual(ends[0], ends[1])

    def test_factors_that_a_cut_separates(self):
        model = self.folder / "gpt.onnx"
        self.run_tool("make-model", "gpt", "--layers=4", "--hidden=16", "--heads=2", "--sequence=8", "--vocabulary=16",
                      "--batch=symbolic", "-o", model)
        for stages in (1, 3, 5):
            for flags in (["--precision=bf16", "--recompute=all"], ["--precision=fp16"], []):
                self.compile(model, f"--stages={stages}", "--microbatches=6", "--batch=12", "--lora=.*:2", *flags)

    def test_only_float32_weights_are_adapted(self):
        w = ", ".join(["0.5"] * 16)
        path = self.write("double.onnxtxt", model_text(["double[N,4] x"], ["double[N,4] y"], [f"double[4,4] w = {{{w}}}"],
                                                       ["y = MatMul(x, w)"]))
        self.assertIn("weight 'w' is float64", self.compile(path, "--stages=1", "--lora=w:2", expect=1))

    def test_the_same_in_every_schedule(self):
        flags = ("--lora=w:2", *self.flags[:-1], "--microbatches=4")
        want = self.run_plan(self.compile(self.model, "--stages=1", *flags), 3, "--shuffle")
        for schedule in schedules():
            stages = 1 if schedule == "interleaved" else 2
            plan = self.compile(self.model, f"--stages={stages}", f"--schedule={schedule}", *flags)
            self.assert_same_run(self.run_plan(plan, 3, "--shuffle"), want, schedule)

    def test_a_fresh_adaptation_changes_nothing(self):
        plain, adapted = (self.compile(self.model, "--stages=2", *self.flags, *more) for more in ([], ["--lora=w:2"]))
        one, other = self.run_plan(plain, 1), self.run_plan(adapted, 1)
        self.assertEqual(one.losses, other.losses)
        untouched = self.run_plan(adapted, 0)
        for name, matrix in (("w1", self.w1), ("w2", self.w2)):
            self.assertLess(relative_difference(floats(untouched.tensors[name][2]), flat(matrix)), 1e-7)

    def test_other_parameters_learn_when_asked(self):
        plan = self.compile(self.model, "--stages=1", "--lora=w1:2", "--train=^b$", *self.flags)
        run = self.run_plan(plan, 1)
        self.assertNotEqual(set(floats(run.tensors["b"][2])), {0.5})
        self.assertLess(relative_difference(floats(run.tensors["w2"][2]), flat(self.w2)), 1e-7)
        self.assertGreater(relative_difference(floats(run.tensors["w1"][2]), flat(self.w1)), 1e-4)

    def test_a_frozen_body_has_no_backward_pass(self):
        nodes = [f"h{k + 1} = MatMul(h{k}, w{k})" for k in range(4)]
        weights = ["float[3,3] w%d = {%s}" % (k, ", ".join(str(0.1 * (i + k)) for i in range(9))) for k in range(4)]
        model = self.write("deep.onnxtxt", model_text(["float[N,3] h0"], ["float[N,3] h4"], weights, nodes))
        printed = self.run_tool("pipec", model, "--train=w2", "--dry-run", "--print=training", "--batch=32").stdout
        backward = [line for line in printed.splitlines() if re.match(r"\s*[IW] ", line)]
        self.assertGreater(len(backward), 2)
        for line in backward:
            self.assertIsNone(re.search(r"\b(w0|w1|h0|h1)\b", line), line)
        # Of the trained layer itself only the weight's gradient.
        self.assertFalse(any(re.search(r"FusedMatMul\([^)]*\bw2\b(?!\.grad)", line) for line in backward), printed)

    def test_mistakes(self):
        for flag, code, message in (
                ("nothing:2", 1, "--lora=nothing:2 finds no weight of a MatMul or Gemm"),
                ("w1:9", 1, "weight 'w1' is float32[6,5], so its rank is at most 5"), ("w1", 2, "'w1' is not REGEX:RANK"),
                ("w1:0", 2, "is not REGEX:RANK with a rank of 1 or more"), ("(:1", 2, "'(' is no regular expression")):
            with self.subTest(flag=flag):
                self.assertIn(message, self.compile(self.model, f"--lora={flag}", *self.flags, expect=code))
        tied = self.write("tied.onnxtxt", model_text(
            ["int64[N] ids"], ["float[N,4] y"], ["float[4,3] w = {0,1,2,3,4,5,6,7,8,9,10,11}"],
            ["e = Gather(w, ids)", "t = Transpose(w)", "y = MatMul(e, t)"]))
        self.assertIn("not adapted: 'w' (node", self.compile(tied, "--lora=w:1", "--batch=32", expect=1))


if __name__ == "__main__":
    main()
