"""B11: a value that crosses a cut and gets no gradient neither fails nor hangs, and its weights stay as they are."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, main, model_text, pipelines, write_npz

WIDTH = 4


def model(use):
    """Stage 0 makes h and g, both from weights; `use` says what stage 1 does with g, giving mask."""
    w = Weights()
    initializers = [w.tensor("wh", WIDTH, WIDTH), w.tensor("wg", WIDTH, WIDTH), w.tensor("wo", WIDTH, WIDTH),
                    "int64 depth = {4}", "float[2] zero_one = {0.0, 1.0}"]
    nodes = ["h = MatMul(x, wh)", "g = MatMul(x, wg)", *use, "y = MatMul(m, wo)"]
    return model_text([f"float[N,{WIDTH}] x"], [f"float[N,{WIDTH}] y"], initializers, nodes)


USES = {
    "argmax and onehot": ["top = ArgMax <axis = 1, keepdims = 0> (g)", "mask = OneHot <axis = -1> (top, depth, zero_one)",
                          "m = Mul(h, mask)"],
    "comparison and where": ["mask = Greater(g, h)", "m = Where(mask, h, x)"],
    "nothing": ["m = Relu(h)"],
}


class B11(Case):
    def test_every_use_and_schedule(self):
        values = Weights(2).random
        data = self.folder / "data.npz"
        write_npz(data, {"x": ("float32", (16, WIDTH), [values.gauss(0, 1) for _ in range(16 * WIDTH)]),
                         "labels": ("int64", (16,), [values.randrange(WIDTH) for _ in range(16)])})
        for what, use in USES.items():
            path = self.write("model.onnxtxt", model(use))
            reference = self.train(self.compile(path, "--stages=1", "--microbatches=4", "--batch=8"), data)
            start = self.train(self.compile(path, "--stages=1", "--microbatches=4", "--batch=8"), data, "--lr=0")
            self.assertNotEqual(reference.tensors["wh"], start.tensors["wh"], f"{what}: wh does not learn")
            self.assertEqual(reference.tensors["wg"], start.tensors["wg"], f"{what}: wg has no gradient and must stay")
            for schedule, flags in pipelines(stages=2, microbatches=4):
                with self.subTest(use=what, schedule=schedule):
                    cut = ["--cut=g"] if what != "nothing" else []
                    plan = self.compile(path, *flags, "--microbatches=4", "--batch=8", *cut)
                    self.assert_same_run(self.train(plan, data), reference, f"{what}, {schedule}")


if __name__ == "__main__":
    main()
