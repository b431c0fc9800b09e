"""B32: schedules without flush train with weights that are some updates old: as many as they say, forward and backward."""

import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, floats, main, model_text, relative_difference, write_npz

WIDTH, LAYERS, LR = 4, 5, 0.05
SKIPS = {2: 0, 4: 1, 5: 2}  # h2 += h0, h4 += h1, h5 += h2: between neighbours and between others


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def transposed(a):
    return [list(column) for column in zip(*a)]


def added(a, b):
    return [[x + y for x, y in zip(p, q)] for p, q in zip(a, b)]


def gradients(x, y, weights):
    """(mean squared error, its gradient by layer) of h(i+1) = h(i) W(i) + skips, in float64."""
    h = [x]
    for i, w in enumerate(weights):
        h.append(product(h[i], w))
        if i + 1 in SKIPS:
            h[i + 1] = added(h[i + 1], h[SKIPS[i + 1]])
    count = len(x) * WIDTH
    loss = sum((p - q) ** 2 for r, s in zip(h[-1], y) for p, q in zip(r, s)) / count
    d = [None] * (LAYERS + 1)
    d[LAYERS] = [[2 * (p - q) / count for p, q in zip(r, s)] for r, s in zip(h[-1], y)]
    result = [None] * LAYERS
    for i in reversed(range(LAYERS)):
        gradient = d[i + 1]
        if i + 1 in SKIPS:
            to = SKIPS[i + 1]
            d[to] = added(d[to], gradient) if d[to] else gradient
        result[i] = product(transposed(h[i]), gradient)
        below = product(gradient, transposed(weights[i]))
        d[i] = added(d[i], below) if d[i] else below
    return loss, result


class Optimizer:
    """One parameter's, by PyTorch's formulas."""

    def __init__(self, name):
        self.name, self.first, self.second, self.count = name, 0.0, 0.0, 0

    def step(self, p, g, lr):
        self.count += 1
        if self.name == "sgd":
            return p - lr * g
        if self.name == "momentum":
            self.first = 0.9 * self.first + g
            return p - lr * self.first
        self.first += (1 - 0.9) * (g - self.first)
        self.second = 0.999 * self.second + (1 - 0.999) * g * g
        m, v = self.first / (1 - 0.9**self.count), self.second / (1 - 0.999**self.count)
        return p - lr * m / (v**0.5 + 1e-8)


def simulate(weights, batches, delays, optimizer="sgd", clip=0.0, pauses=(), lr=lambda step, delay: LR, skipped=()):
    """Losses and final weights, one step after the other. Layer i of step t uses the weights that its t - delays[i] first
    updates made, or those of the last pause (the pipeline was empty then), or the first ones. A skipped step's update leaves
    all as it was."""
    versions = [list(weights)]
    states = [[[Optimizer(optimizer) for _ in row] for row in w] for w in weights]
    losses, begin = [], 0
    for t, (x, y) in enumerate(batches):
        begin = t if t in pauses else begin
        if t in skipped:
            losses.append(None)
            versions.append(versions[t])
            continue
        used = [versions[max(begin, t - delay)][i] for i, delay in enumerate(delays)]
        loss, g = gradients(x, y, used)
        losses.append(loss)
        norm = sum(v * v for layer in g for row in layer for v in row) ** 0.5
        scale = min(1, clip / (norm + 1e-6)) if clip else 1
        versions.append([[[states[i][r][c].step(w[r][c], scale * g[i][r][c], lr(t, delays[i])) for c in range(WIDTH)]
                          for r in range(WIDTH)] for i, w in enumerate(versions[t])])
    return losses, versions[-1]


def cuts(stages):
    """Names to cut at, and the stage of every layer."""
    first = [i * LAYERS // stages for i in range(stages)]
    flags = ["--cut=" + ",".join(f"h{i}" for i in first[1:])] if stages > 1 else []
    return flags, [sum(i >= f for f in first) - 1 for i in range(LAYERS)]


class B32(Case):
    def setUp(self):
        super().setUp()
        w = Weights()
        initializers = [w.tensor(f"w{i}", WIDTH, WIDTH) for i in range(LAYERS)]
        self.products = [f"{'g' if i + 1 in SKIPS else 'h'}{i + 1} = MatMul(h{i}, w{i})" for i in range(LAYERS)]
        self.sums = [f"h{i + 1} = Add(g{i + 1}, h{SKIPS[i + 1]})" if i + 1 in SKIPS else "" for i in range(LAYERS)]
        nodes = [line for pair in zip(self.products, self.sums) for line in pair if line]
        self.path = self.write("linear.onnxtxt", model_text([f"float[N,{WIDTH}] h0"], [f"float[N,{WIDTH}] h{LAYERS}"],
                                                            initializers, nodes))
        self.weights = []
        for text in initializers:
            values = [self.rounded(float(v)) for v in text[text.index("{") + 1:-1].split(",")]
            self.weights.append([values[r * WIDTH:(r + 1) * WIDTH] for r in range(WIDTH)])

    @staticmethod
    def rounded(value):
        return struct.unpack("f", struct.pack("f", value))[0]

    def batches(self, steps, samples, replaced={}):
        """The data's file, and the same as matrices, a batch a step; `replaced`: elements of x."""
        values = Weights(2).random
        x, y = ([self.rounded(values.gauss(0, 1)) for _ in range(steps * samples * WIDTH)] for _ in range(2))
        for place, value in replaced.items():
            x[place] = value
        self.arrays = {"h0": x, "labels": y}
        data = self.folder / "data.npz"
        write_npz(data, {name: ("float32", (steps * samples, WIDTH), array) for name, array in (("h0", x), ("labels", y))})
        row = lambda array, n: array[n * WIDTH:(n + 1) * WIDTH]
        return data, [tuple([row(array, t * samples + n) for n in range(samples)] for array in (x, y)) for t in range(steps)]

    def plan(self, schedule, stages, *flags):
        return self.compile(self.path, f"--schedule={schedule}", f"--stages={stages}", "--loss=mse", *cuts(stages)[0], *flags)

    def assert_close(self, run, simulated, tolerance=1e-6):
        losses, weights = simulated
        self.assertEqual(len(run.losses), len(losses))
        for ours, theirs in zip(run.losses, losses):
            if theirs is None:
                continue
            self.assertLess(abs(ours - theirs), tolerance * abs(theirs))
        for i, w in enumerate(weights):
            ours = floats(run.tensors[f"w{i}"][2])
            self.assertLess(relative_difference(ours, [v for row in w for v in row]), tolerance, f"w{i}")

    def test_pipedream(self):
        data, batches = self.batches(12, 1)
        for stages in range(1, 6):
            with self.subTest(stages=stages):
                plan = self.plan("pipedream", stages, "--optimizer=sgd")
                run = self.train(plan, data, f"--lr={LR}")
                delays = [stages - 1 - stage for stage in cuts(stages)[1]]
                self.assert_close(run, simulate(self.weights, batches, delays))

    def test_pipedream_on_one_rank_is_sgd(self):
        data, _ = self.batches(12, 1)
        plain = self.compile(self.path, "--stages=1", "--microbatches=1", "--loss=mse", "--optimizer=sgd")
        run = self.train(self.plan("pipedream", 1, "--optimizer=sgd"), data, f"--lr={LR}")
        reference = self.train(plain, data, f"--lr={LR}")
        self.assertEqual(run.losses, reference.losses)
        self.assertEqual(run.export, reference.export)

    def test_2bw(self):
        samples = 6
        data, batches = self.batches(8, samples)
        for optimizer, lr, clip in (("sgd", LR, 0), ("sgd", LR, 0.5), ("momentum", LR / 5, 0), ("adam", LR / 5, 0)):
            simulated = simulate(self.weights, batches, [1] * LAYERS, optimizer, clip, lr=lambda step, delay: lr)
            reference = None
            for stages in range(1, 6):
                with self.subTest(stages=stages, optimizer=optimizer, clip=clip):
                    plan = self.plan("pipedream-2bw", stages, f"--optimizer={optimizer}", f"--microbatches={samples}")
                    run = self.train(plan, data, f"--lr={lr}", *([f"--clip-norm={clip}"] if clip else []))
                    self.assert_close(run, simulated, 1e-5 if optimizer == "adam" else 1e-6)
                    reference = reference or run
                    self.assert_same_run(run, reference, "another number of stages")

    def test_2bw_skips_a_step_that_overflows(self):
        """Parameters, moments and the count of updates stay; the scale follows two steps later, everywhere at once."""
        samples, bad = 6, 3
        data, batches = self.batches(9, samples, {bad * samples * WIDTH: 1e30})
        lr = LR / 5
        simulated = simulate(self.weights, batches, [1] * LAYERS, "adam", 0.5, lr=lambda step, delay: lr, skipped=(bad,))
        reference = None
        for stages in (1, 2, 4):
            with self.subTest(stages=stages):
                plan = self.plan("pipedream-2bw", stages, "--optimizer=adam", f"--microbatches={samples}", "--precision=fp16")
                run = self.train(plan, data, f"--lr={lr}", "--clip-norm=0.5")
                rows = [json.loads(line) for line in run.metrics.splitlines()]
                self.assertEqual([row["skipped_steps"] for row in rows], [0] * bad + [1] * (9 - bad))
                self.assertEqual([row["loss_scale"] for row in rows], [65536] * (bad + 2) + [32768] * (7 - bad))
                self.assert_close(run, simulated, 2e-2)
                reference = reference or run
                self.assert_same_run(run, reference, "another number of stages")

    def test_2bw_has_the_same_bits_at_every_cut(self):
        """Dropout, a shared embedding, 16-bit weights made once a step, recompute, shuffled data: as on one rank."""
        model, data = self.folder / "gpt.onnx", self.folder / "tokens.npz"
        self.run_tool("make-model", "gpt", "--layers=3", "--hidden=16", "--heads=2", "--sequence=8", "--vocabulary=12",
                      "--dropout=0.2", "--batch=symbolic", "--seed=1", "-o", model)
        random = Weights(7).random
        tokens = [random.randrange(12) for _ in range(60 * 8)]
        write_npz(data, {"input_ids": ("int64", (60, 8), tokens), "labels": ("int64", (60, 8), tokens[1:] + [0])})
        for flags in ([], ["--precision=bf16"], ["--recompute=all"]):
            common = ["--schedule=pipedream-2bw", "--microbatches=5", "--batch=10", *flags]
            run_flags = ["--shuffle", "--epochs=2", "--seed=3", "--clip-norm=1", "--lr=0.01", "--lr-schedule=cosine",
                         f"--eval-data={data}", "--eval-every=5"]
            reference = self.train(self.compile(model, "--stages=1", *common), data, *run_flags)
            synchronous = self.compile(model, "--stages=1", *common[1:])
            self.assertEqual(reference.losses[:2][0], self.train(synchronous, data, *run_flags).losses[0])
            self.assertNotEqual(reference.losses[2:], self.train(synchronous, data, *run_flags).losses[2:])
            for stages in (2, 3, 5):
                with self.subTest(flags=flags, stages=stages):
                    plan = self.compile(model, f"--stages={stages}", *common)
                    self.assert_same_run(self.train(plan, data, *run_flags), reference, f"P={stages} {flags}")

    def test_the_exact_update(self):
        """w(t+1) = w(t) - lr grad(w(t-1)) to the bit, with the gradients of synchronous one-rank plans: a layer is
        h (W + U), and only U = 0 learns, so that one step of SGD leaves -lr grad(W) in it."""
        samples, steps = 4, 5
        data, _ = self.batches(steps, samples)
        run = self.train(self.plan("pipedream-2bw", 3, "--optimizer=sgd", f"--microbatches={samples}"), data, f"--lr={LR}")
        versions = [[[v for row in w for v in row] for w in self.weights]]
        for t in range(steps):
            step = self.single_step(versions[max(0, t - 1)], t, samples)
            versions.append([[self.rounded(v + c) for v, c in zip(w, change)] for w, change in zip(versions[t], step)])
        for i, w in enumerate(versions[-1]):
            self.assertEqual(list(floats(run.tensors[f"w{i}"][2])), w, f"w{i}")

    def single_step(self, weights, t, samples):
        """What one step of plain SGD adds to each layer's weights."""
        text = lambda name, values: (f"float[{WIDTH},{WIDTH}] {name} = {{" + ", ".join(f"{v:.9g}" for v in values) + "}")
        initializers = [text(f"w{i}", w) for i, w in enumerate(weights)]
        initializers += [text(f"u{i}", [0.0] * len(w)) for i, w in enumerate(weights)]
        nodes = [node.replace(f", w{i})", f", v{i})") for i, node in enumerate(self.products)]
        nodes = [f"v{i} = Add(w{i}, u{i})" for i in range(LAYERS)] + [line for pair in zip(nodes, self.sums) for line in pair if line]
        path = self.write("step.onnxtxt", model_text([f"float[N,{WIDTH}] h0"], [f"float[N,{WIDTH}] h{LAYERS}"], initializers, nodes))
        data = self.folder / "step.npz"
        cut = slice(t * samples * WIDTH, (t + 1) * samples * WIDTH)
        write_npz(data, {name: ("float32", (samples, WIDTH), array[cut]) for name, array in self.arrays.items()})
        plan = self.compile(path, "--stages=1", f"--microbatches={samples}", "--loss=mse", "--optimizer=sgd", "--train=^u")
        run = self.train(plan, data, f"--lr={LR}")
        return [floats(run.tensors[f"u{i}"][2]) for i in range(LAYERS)]

    def test_an_evaluation_empties_the_pipeline(self):
        data, batches = self.batches(11, 4)
        for schedule, stages, flags in (("pipedream", 3, ["--batch=4"]),
                                        ("pipedream-2bw", 2, ["--microbatches=4"])):
            with self.subTest(schedule=schedule):
                plan = self.plan(schedule, stages, "--optimizer=sgd", *flags)
                run = self.train(plan, data, f"--lr={LR}", f"--eval-data={data}", "--eval-every=4")
                delays = [stages - 1 - s if schedule == "pipedream" else 1 for s in cuts(stages)[1]]
                self.assert_close(run, simulate(self.weights, batches, delays, pauses=(4, 8)))

    def test_learning_rate_by_delay(self):
        """PipeMare's T1: lr / (delay + 1)^p, where p falls from 1 to 0 in a quarter of the steps."""
        data, batches = self.batches(12, 4)
        for schedule, stages, flags in (("pipedream", 4, ["--batch=4"]),
                                        ("pipedream-2bw", 2, ["--microbatches=4"])):
            with self.subTest(schedule=schedule):
                plan = self.plan(schedule, stages, "--optimizer=sgd", "--staleness=lr", *flags)
                run = self.train(plan, data, f"--lr={LR}")
                delays = [stages - 1 - s if schedule == "pipedream" else 1 for s in cuts(stages)[1]]
                lr = lambda step, delay: LR / (delay + 1) ** (1 - min(step / 3, 1))
                self.assert_close(run, simulate(self.weights, batches, delays, lr=lr))

    def test_refusals(self):
        model, tied = str(self.path), self.write("tied.onnxtxt", model_text(
            [f"float[N,{WIDTH}] x"], [f"float[N,{WIDTH}] y"], [Weights().tensor("w", WIDTH, WIDTH)],
            ["a = MatMul(x, w)", "b = Tanh(a)", "y = MatMul(b, w)"]))
        for path, flags, words in (
                (model, ["--schedule=pipedream", "--microbatches=4"], ["--microbatches=1 works"]),
                (model, ["--schedule=pipedream-2bw", "--stages=4", "--microbatches=3"], ["--microbatches=4 works"]),
                (model, ["--schedule=pipedream", "--precision=fp16"], ["fp16", "bf16"]),
                (tied, ["--schedule=pipedream", "--stages=2", "--cut=b"], ["'w'", "pipedream-2bw"]),
                (model, ["--schedule=1f1b", "--staleness=lr"], ["--staleness=lr", "pipedream"])):
            with self.subTest(flags=flags):
                error = self.compile(path, *flags, "--loss=mse", expect=2 if "--staleness=lr" in flags else 1)
                for word in words:
                    self.assertIn(word, error)
        data, _ = self.batches(2, 1)
        plan = self.plan("pipedream", 2)
        refused = self.run_tool("piperun", plan, f"--data={data}", "--clip-norm=1", expect=1)
        self.assertIn("--clip-norm", refused.stderr)
        self.assertNotIn("grad_norm", self.train(plan, data).metrics.decode())

    def test_versions_held(self):
        """P - r versions of the weights on rank r, two with pipedream-2bw: read off the memory that is planned."""
        for schedule, held in (("pipedream", lambda rank: 4 - rank), ("pipedream-2bw", lambda rank: 2)):
            done = self.run_tool("pipec", self.path, "--print=planned", "--dry-run", f"--schedule={schedule}", "--stages=4",
                                 "--loss=mse", *cuts(4)[0], "-o", self.folder / "none", "--microbatches=" + ("1" if schedule == "pipedream" else "4"))
            found, rank = {}, -1
            for line in done.stdout.splitlines():
                if line.startswith("memory rank "):
                    rank = int(line.split()[2].rstrip(":"))
                elif " parameter w" in line:
                    found.setdefault(rank, set()).add(len(line.split(" bytes at ")[1].split(", ")))
            self.assertEqual(found, {rank: {held(rank)} for rank in range(4)}, schedule)


if __name__ == "__main__":
    main()
