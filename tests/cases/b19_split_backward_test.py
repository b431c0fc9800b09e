"""B19: gradients of a weight that is used more than once are whole when the backward pass is split in I and W: each use counted
once, in one stage or over several, on every schedule."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, floats, main, model_text, pipelines, write_npz

X = [1.1, -0.7]
W = [[0.9, -0.4], [0.3, 0.7]]
BIAS = [0.25, -0.15]
OTHERS = {"a": [[1.2, 0.1], [-0.3, 0.8]], "c": [[0.6, 0.2], [-0.5, 1.1]], "d": [[0.7, -0.2], [0.4, 0.9]]}
RATE, SAMPLES, MICROBATCHES = 0.5, 8, 4

# What h goes through, stage by stage: a matrix, or "+" for the bias.
VARIANTS = {
    "a weight twice in one stage": [["a"], ["w", "w"], ["c"], ["d"]],
    "a weight three times in one stage": [["a"], ["c"], ["w", "w", "w"], ["d"]],
    "a weight and a bias twice in one stage": [["a"], ["w", "+", "w", "+"], ["c"], ["d"]],
    "a weight in two stages": [["a", "w"], ["c"], ["d"], ["w"]],
    "a weight twice in each of two stages": [["a"], ["w", "w"], ["w", "c", "w"], ["d"]],
    "a weight and a bias in the first and the last stage": [["w", "+"], ["a"], ["c"], ["w", "+", "d"]],
}


def rows(batch):
    """The samples: multiples of X."""
    return [[value * (1 + k / 4) for value in X] for k in range(batch)]


def times(matrix, row):
    return [sum(row[i] * matrix[i][j] for i in range(2)) for j in range(2)]


def gradients(steps, batch):
    """Of the mean of y over samples and columns, by the chain rule along `steps`, in float64."""
    matrices = {"w": W, **OTHERS}
    total = {name: [[0.0, 0.0], [0.0, 0.0]] for name in matrices}
    total["+"] = [0.0, 0.0]
    for row in rows(batch):
        inputs = [row]
        for step in steps:
            now = inputs[-1]
            inputs.append([now[j] + BIAS[j] for j in range(2)] if step == "+" else times(matrices[step], now))
        upstream = [1 / (2 * batch)] * 2
        for step, row in zip(reversed(steps), reversed(inputs[:-1])):
            if step == "+":
                total["+"] = [total["+"][j] + upstream[j] for j in range(2)]
                continue
            for i in range(2):
                for j in range(2):
                    total[step][i][j] += row[i] * upstream[j]
            upstream = [sum(matrices[step][i][j] * upstream[j] for j in range(2)) for i in range(2)]
    return total


def model(stages):
    """(text, values to cut at)."""
    nodes, cut, h = [], [], "x"
    for k, stage in enumerate(stages):
        for i, step in enumerate(stage):
            nodes.append(f"h{k}_{i} = {'Add' if step == '+' else 'MatMul'}({h}, {'b' if step == '+' else step})")
            h = f"h{k}_{i}"
        cut.append(h)
    nodes.append(f"y = ReduceMean <keepdims = 0> ({h})")
    used = {step for stage in stages for step in stage}
    tensors = [f"float[2,2] {name} = {{{', '.join(str(v) for row in m for v in row)}}}"
               for name, m in {"w": W, **OTHERS}.items() if name in used]
    if "+" in used:
        tensors.append(f"float[2] b = {{{BIAS[0]}, {BIAS[1]}}}")
    return model_text(["float[N,2] x"], ["float y"], tensors, nodes), cut[:-1]


class B19(Case):
    def test_every_schedule_and_use(self):
        data = self.folder / "data.npz"
        write_npz(data, {"x": ("float32", (SAMPLES, 2), [v for row in rows(SAMPLES) for v in row])})
        for variant, stages in VARIANTS.items():
            text, cut = model(stages)
            path = self.write("model.onnxtxt", text)
            common = [f"--microbatches={MICROBATCHES}", f"--batch={SAMPLES}", "--optimizer=sgd"]
            reference = self.train(self.compile(path, "--stages=1", *common), data, f"--lr={RATE}")
            expected = gradients([step for stage in stages for step in stage], SAMPLES)
            before = {"w": [v for row in W for v in row], "b": BIAS,
                      **{name: [v for row in m for v in row] for name, m in OTHERS.items()}}
            flat = {"b" if name == "+" else name: [v for row in g for v in row] if name != "+" else g
                    for name, g in expected.items()}
            self.assertEqual(len(reference.losses), 1)
            for name, (dtype, shape, raw) in reference.tensors.items():
                measured = [(old - new) / RATE for old, new in zip(before[name], floats(raw, dtype))]
                for got, wanted in zip(measured, flat[name]):
                    self.assertAlmostEqual(got, wanted, delta=1e-6, msg=f"{variant}: gradient of {name}")
            split = 0
            for schedule, flags in pipelines(stages=4, microbatches=MICROBATCHES):
                with self.subTest(variant=variant, schedule=schedule):
                    written = self.folder / "order.csv"
                    plan = self.compile(path, *flags, *common, "--cut=" + ",".join(cut), f"--emit-schedule={written}")
                    split += "W0" in written.read_text()
                    self.assert_same_run(self.train(plan, data, f"--lr={RATE}"), reference, f"{variant}, {schedule}")
            self.assertGreaterEqual(split, 6, "schedules that split the backward pass")


if __name__ == "__main__":
    main()
