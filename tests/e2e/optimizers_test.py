"""Losses, norms and parameters against formulas written out here, in float64 and with no library."""

import json
import math
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, floats, main, model_text, read_npz, relative_difference, write_npz

BATCH, STEPS, INPUTS, OUTPUTS = 8, 5, 4, 3
SAMPLES = BATCH * STEPS


class Model:
    """y = x w, and the whole of its training."""

    def __init__(self):
        r = random.Random(11)
        self.w = [[round(r.uniform(-1, 1), 4) for _ in range(OUTPUTS)] for _ in range(INPUTS)]
        self.x = [[round(r.gauss(0, 1), 4) for _ in range(INPUTS)] for _ in range(SAMPLES)]
        self.targets = [[float(r.randrange(2)) for _ in range(OUTPUTS)] for _ in range(SAMPLES)]
        self.classes = [r.randrange(OUTPUTS) for _ in range(SAMPLES)]

    def text(self):
        w = ", ".join(map(repr, flat(self.w)))
        return model_text([f"float[N,{INPUTS}] x"], [f"float[N,{OUTPUTS}] y"],
                          [f"float[{INPUTS},{OUTPUTS}] w = {{{w}}}"], ["y = MatMul(x, w)"])

    def logits(self, w, sample):
        return [sum(self.x[sample][i] * w[i][o] for i in range(INPUTS)) for o in range(OUTPUTS)]

    def loss(self, w, samples, kind, smoothing=0.0, ignore=-100):
        """(loss, gradient of w) over all the samples at once."""
        loss, weight, gradient = 0.0, 0, [[0.0] * OUTPUTS for _ in range(INPUTS)]
        for s in samples:
            y = self.logits(w, s)
            if kind == "mse":
                weight += OUTPUTS
                d = [2 * (a - b) for a, b in zip(y, self.targets[s])]
                loss += sum((a - b) ** 2 for a, b in zip(y, self.targets[s]))
            elif kind == "bce":
                weight += OUTPUTS
                p = [1 / (1 + math.exp(-a)) for a in y]
                d = [a - b for a, b in zip(p, self.targets[s])]
                loss -= sum(b * math.log(a) + (1 - b) * math.log(1 - a) for a, b in zip(p, self.targets[s]))
            elif self.classes[s] != ignore:
                weight += 1
                total = sum(math.exp(a) for a in y)
                p = [math.exp(a) / total for a in y]
                q = [(1 - smoothing) * (o == self.classes[s]) + smoothing / OUTPUTS for o in range(OUTPUTS)]
                d = [a - b for a, b in zip(p, q)]
                loss -= sum(b * math.log(a) for a, b in zip(p, q))
            else:
                continue
            for i in range(INPUTS):
                for o in range(OUTPUTS):
                    gradient[i][o] += self.x[s][i] * d[o]
        return loss / weight, [[g / weight for g in row] for row in gradient]

    def train(self, optimizer, kind, lr=1e-3, decay=0.0, momentum=0.9, beta1=0.9, beta2=0.999, eps=1e-8, clip_norm=0.0,
              clip_value=0.0, schedule="constant", warmup=0, **loss):
        """([(loss, norm, lr)], flat w): torch.optim's rules."""
        w, rows = [row[:] for row in self.w], []
        m, v = ([[0.0] * OUTPUTS for _ in range(INPUTS)] for _ in range(2))
        for t in range(STEPS):
            value, g = self.loss(w, range(t * BATCH, (t + 1) * BATCH), kind, **loss)
            norm = math.sqrt(sum(a * a for a in flat(g)))
            rate = lr * factor(schedule, t, warmup)
            rows.append((value, norm, rate))
            scale = min(1, clip_norm / (norm + 1e-6)) if clip_norm else 1
            for i in range(INPUTS):
                for o in range(OUTPUTS):
                    a, x = g[i][o] * scale, w[i][o]
                    if clip_value:
                        a = max(-clip_value, min(clip_value, a))
                    if optimizer == "adamw":
                        x -= rate * decay * x
                    else:
                        a += decay * x
                    if optimizer == "sgd":
                        step = a
                    elif optimizer in ("momentum", "nesterov"):
                        m[i][o] = momentum * m[i][o] + a
                        step = a + momentum * m[i][o] if optimizer == "nesterov" else m[i][o]
                    elif optimizer in ("adam", "adamw"):
                        m[i][o] = beta1 * m[i][o] + (1 - beta1) * a
                        v[i][o] = beta2 * v[i][o] + (1 - beta2) * a * a
                        root = math.sqrt(v[i][o] / (1 - beta2 ** (t + 1)))
                        step = m[i][o] / (1 - beta1 ** (t + 1)) / (root + eps)
                    else:
                        v[i][o] += a * a
                        step = a / (math.sqrt(v[i][o]) + 1e-10)
                    w[i][o] = x - rate * step
        return rows, flat(w)


def flat(rows):
    return [value for row in rows for value in row]


def factor(schedule, t, warmup):
    if schedule == "one-cycle":
        top = (warmup or 0.3 * STEPS) - 1
        start, end, at = (1 / 25, 1, t / top) if t <= top else (1, 1 / 250000, (t - top) / (STEPS - 1 - top))
        return end + (start - end) / 2 * (1 + math.cos(math.pi * at))
    if t < warmup:
        return (t + 1) / warmup
    done = (t - warmup) / (STEPS - warmup)
    return {"constant": 1, "linear": 1 - done, "cosine": (1 + math.cos(math.pi * done)) / 2,
            "step": 0.1 ** min(2, int(done * 3))}[schedule]


class Formulas(Case):
    def setUp(self):
        super().setUp()
        self.m = Model()
        self.model = self.write("model.onnxtxt", self.m.text())
        x = ("float32", (SAMPLES, INPUTS), flat(self.m.x))
        write_npz(self.folder / "targets.npz", {"x": x, "labels": ("float32", (SAMPLES, OUTPUTS), flat(self.m.targets))})
        write_npz(self.folder / "classes.npz", {"x": x, "labels": ("int64", (SAMPLES,), self.m.classes)})

    def agree(self, optimizer, kind="cross-entropy", compile_flags=(), run_flags=(), **formula):
        plan = self.compile(self.model, "--stages=1", f"--batch={BATCH}", "--microbatches=2", f"--optimizer={optimizer}",
                            f"--loss={kind}", *compile_flags)
        data = self.folder / ("classes.npz" if kind == "cross-entropy" else "targets.npz")
        run = self.train(plan, data, *run_flags, steps=STEPS)
        rows = [json.loads(line) for line in run.metrics.splitlines()]
        wanted, w = self.m.train(optimizer, kind, **formula)
        what = f"{optimizer} {kind} {compile_flags} {run_flags}"
        for row, (loss, norm, lr) in zip(rows, wanted, strict=True):
            for name, value in (("loss", loss), ("grad_norm", norm), ("lr", lr)):
                self.assertAlmostEqual(row[name], value, delta=2e-6 * abs(value) + 1e-9, msg=f"{what}: {name}, {row}")
        self.assertLess(relative_difference(floats(run.tensors["w"][2]), w), 2e-6, what)

    def test_every_optimizer_with_weight_decay(self):
        for kind in ("cross-entropy", "mse", "bce"):
            for optimizer in ("sgd", "momentum", "nesterov", "adam", "adamw", "adagrad"):
                self.agree(optimizer, kind, run_flags=("--lr=0.1", "--weight-decay=0.05"), lr=0.1, decay=0.05)

    def test_clipping(self):
        self.agree("sgd", run_flags=("--lr=0.1", "--clip-norm=0.1"), lr=0.1, clip_norm=0.1)
        self.agree("momentum", run_flags=("--lr=0.1", "--momentum=0.5", "--clip-norm=0.2", "--clip-value=0.05"), lr=0.1,
                   momentum=0.5, clip_norm=0.2, clip_value=0.05)
        self.agree("adam", run_flags=("--lr=0.1", "--clip-value=0.02", "--beta1=0.5", "--beta2=0.7", "--eps=0.01"), lr=0.1,
                   clip_value=0.02, beta1=0.5, beta2=0.7, eps=0.01)

    def test_every_schedule_of_the_rate(self):
        for schedule in ("constant", "linear", "cosine", "step", "one-cycle"):
            for warmup in (0, 2):
                self.agree("sgd", run_flags=("--lr=0.3", f"--lr-schedule={schedule}", f"--warmup-steps={warmup}"), lr=0.3,
                           schedule=schedule, warmup=warmup)

    def test_smoothed_and_ignored_labels(self):
        self.agree("adamw", compile_flags=("--label-smoothing=0.3",), decay=0.01, smoothing=0.3)
        self.agree("sgd", compile_flags=("--ignore-index=1", "--label-smoothing=0.1"), run_flags=("--lr=0.5",), lr=0.5,
                   ignore=1, smoothing=0.1)

    def test_evaluation_counts_what_inference_predicts(self):
        """12 does not divide 40: the last batch is padded, then cut off."""
        sizes = ("--stages=1", "--batch=12", "--microbatches=4")
        plan, inferring = self.compile(self.model, *sizes), self.compile(self.model, "--mode=infer", *sizes)
        data = f"--data={self.folder / 'classes.npz'}"
        done = self.run_tool("piperun", plan, data, f"--eval-{data[2:]}", "--steps=0", "--json")
        evaluation = json.loads(done.stdout)["evaluations"][0]
        self.run_tool("piperun", inferring, data, "--outputs=outputs.npz")
        y = floats(read_npz(self.folder / "outputs.npz")["y"][2])
        right = 0
        for s in range(SAMPLES):
            row = y[OUTPUTS * s : OUTPUTS * (s + 1)]
            self.assertLess(relative_difference(row, self.m.logits(self.m.w, s)), 1e-5)
            right += max(range(OUTPUTS), key=row.__getitem__) == self.m.classes[s]
        self.assertEqual(evaluation["accuracy"], right / SAMPLES)
        self.assertAlmostEqual(evaluation["loss"], self.m.loss(self.m.w, range(SAMPLES), "cross-entropy")[0], delta=1e-6)


if __name__ == "__main__":
    main()
