"""B25: gradients and loss are the whole batch's mean, whatever the number of microbatches."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, floats, main, model_text, pipelines, relative_difference, write_npz

INPUTS, OUTPUTS, SAMPLES, RATE, STEPS = 4, 3, 16, 0.1, 5


def plain_sgd(x, w1, w2, labels):
    """Float64 gradient descent on the mean squared error of x w1 w2 over one batch, written out by hand."""
    losses = []
    for _ in range(STEPS):
        h = [[sum(x[n][i] * w1[i][j] for i in range(INPUTS)) for j in range(INPUTS)] for n in range(SAMPLES)]
        y = [[sum(h[n][j] * w2[j][k] for j in range(INPUTS)) for k in range(OUTPUTS)] for n in range(SAMPLES)]
        e = [[y[n][k] - labels[n][k] for k in range(OUTPUTS)] for n in range(SAMPLES)]
        count = SAMPLES * OUTPUTS
        losses.append(sum(v * v for row in e for v in row) / count)
        dh = [[2 / count * sum(e[n][k] * w2[j][k] for k in range(OUTPUTS)) for j in range(INPUTS)] for n in range(SAMPLES)]
        d2 = [[2 / count * sum(h[n][j] * e[n][k] for n in range(SAMPLES)) for k in range(OUTPUTS)] for j in range(INPUTS)]
        d1 = [[sum(x[n][i] * dh[n][j] for n in range(SAMPLES)) for j in range(INPUTS)] for i in range(INPUTS)]
        w1 = [[w1[i][j] - RATE * d1[i][j] for j in range(INPUTS)] for i in range(INPUTS)]
        w2 = [[w2[j][k] - RATE * d2[j][k] for k in range(OUTPUTS)] for j in range(INPUTS)]
    return losses, w1, w2


class B25(Case):
    def test_equal_for_every_microbatch_count_and_schedule(self):
        random = Weights(4).random
        rows = lambda n, m: [[round(random.gauss(0, 1), 4) for _ in range(m)] for _ in range(n)]
        flat = lambda matrix: [v for row in matrix for v in row]
        text = lambda matrix: ", ".join(f"{v:.4f}" for v in flat(matrix))
        x, w1, w2, labels = rows(SAMPLES, INPUTS), rows(INPUTS, INPUTS), rows(INPUTS, OUTPUTS), rows(SAMPLES, OUTPUTS)
        path = self.write("linear.onnxtxt", model_text(
            [f"float[N,{INPUTS}] x"], [f"float[N,{OUTPUTS}] y"],
            [f"float[{INPUTS},{INPUTS}] w1 = {{{text(w1)}}}", f"float[{INPUTS},{OUTPUTS}] w2 = {{{text(w2)}}}"],
            ["h = MatMul(x, w1)", "y = MatMul(h, w2)"]))
        data = self.folder / "data.npz"
        write_npz(data, {"x": ("float32", (SAMPLES, INPUTS), flat(x)), "labels": ("float32", (SAMPLES, OUTPUTS), flat(labels))})
        losses, end1, end2 = plain_sgd(x, w1, w2, labels)
        for microbatches in (1, 4, 16):
            for schedule, flags in pipelines(stages=2, microbatches=microbatches):
                with self.subTest(microbatches=microbatches, schedule=schedule):
                    plan = self.compile(path, *flags, f"--microbatches={microbatches}", f"--batch={SAMPLES}", "--loss=mse",
                                        "--optimizer=sgd")
                    run = self.train(plan, data, f"--lr={RATE}", "--weight-decay=0", f"--epochs={STEPS}")
                    self.assertEqual(len(run.losses), STEPS)
                    for got, want in zip(run.losses, losses):
                        self.assertAlmostEqual(got / want, 1, delta=1e-6)
                    for name, want in (("w1", end1), ("w2", end2)):
                        self.assertLess(relative_difference(floats(run.tensors[name][2]), flat(want)), 1e-6)


if __name__ == "__main__":
    main()
