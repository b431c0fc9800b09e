"""B20: float, bool, int64 and scalar values cross the same cut; gradients travel only for floats.

A scalar made from the data mixes the samples of a microbatch, so with several microbatches it is one scalar a sample."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, main, model_text, pipelines, write_npz

WIDTH, SAMPLES, VOCABULARY = 4, 16, 8


def model(scale):
    """Made in stage 0, used in stages 1 and 2: h (float), mask (bool), less (int64), scale (float)."""
    w = Weights()
    initializers = [w.tensor("e", VOCABULARY, WIDTH), w.tensor("w0", WIDTH, WIDTH), w.tensor("w1", WIDTH, WIDTH),
                    w.tensor("w2", WIDTH, WIDTH), "int64[1] one = {1}", f"int64[1] top = {{{VOCABULARY - 1}}}",
                    "float[1] zero = {0.0}", "int64[1] last = {1}"]
    nodes = ["i = Gather(e, ids)", "h = MatMul(i, w0)", "mask = Greater(h, zero)", "less = Sub(top, ids)",
             "sq = Mul(h, h)", scale,
             "h1 = MatMul(h, w1)", "m1 = Where(mask, h1, zero)", "s1 = Mul(m1, scale)", "g1 = Gather(e, less)", "a1 = Add(s1, g1)",
             "h2 = MatMul(a1, w2)", "m2 = Where(mask, h2, a1)", "s2 = Add(m2, scale)", "g2 = Gather(e, less)", "y = Add(s2, g2)"]
    return model_text(["int64[N] ids"], [f"float[N,{WIDTH}] y"], initializers, nodes)


class B20(Case):
    def test_every_schedule(self):
        values = Weights(2).random
        data = self.folder / "data.npz"
        write_npz(data, {"ids": ("int64", (SAMPLES,), [values.randrange(VOCABULARY) for _ in range(SAMPLES)]),
                         "labels": ("int64", (SAMPLES,), [values.randrange(WIDTH) for _ in range(SAMPLES)])})
        scales = {1: "scale = ReduceMean <keepdims = 0> (sq)", 3: "scale = ReduceMean <keepdims = 1> (sq, last)"}
        for microbatches, scale in scales.items():
            path = self.write("types.onnxtxt", model(scale))
            common = [f"--microbatches={microbatches}", "--batch=6", "--optimizer=sgd"]
            reference = self.train(self.compile(path, "--stages=1", *common), data, "--lr=0.1")
            self.assertEqual(len(reference.losses), SAMPLES // 6)
            for schedule, flags in pipelines(stages=3, microbatches=microbatches):
                for cut in ("--cut=scale,a1", "--cut=mask,s1"):
                    with self.subTest(microbatches=microbatches, schedule=schedule, cut=cut):
                        plan = self.compile(path, *flags, cut, *common)
                        self.assert_same_run(self.train(plan, data, "--lr=0.1"), reference, schedule)


if __name__ == "__main__":
    main()
