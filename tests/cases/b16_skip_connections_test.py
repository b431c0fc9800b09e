"""B16: residual connections across any number of stages, with one stage far slower than the others."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, main, model_text, pipelines, read_npz, write_npz

WIDTH, WIDE, SAMPLES = 8, 4096, 32


def model():
    """Adds 0->2, 0->3, 1->3; stage 1 goes through a wide layer, so it is many times slower than the rest."""
    w = Weights()
    initializers = [w.tensor(f"w{i}", WIDTH, WIDTH) for i in range(4)]
    initializers += [w.tensor("up", WIDTH, WIDE), w.tensor("down", WIDE, WIDTH)]
    nodes = ["a = MatMul(x, w0)", "s0 = Tanh(a)",
             "b = MatMul(s0, w1)", "b2 = MatMul(b, up)", "b3 = Tanh(b2)", "b4 = MatMul(b3, down)", "s1 = Tanh(b4)",
             "c = MatMul(s1, w2)", "c2 = Add(c, s0)", "s2 = Tanh(c2)",
             "d = MatMul(s2, w3)", "d2 = Add(d, s0)", "y = Add(d2, s1)"]
    return model_text([f"float[N,{WIDTH}] x"], [f"float[N,{WIDTH}] y"], initializers, nodes)


class B16(Case):
    def setUp(self):
        super().setUp()
        self.path = self.write("skips.onnxtxt", model())
        values = Weights(2).random
        self.x = ("float32", (SAMPLES, WIDTH), [values.gauss(0, 1) for _ in range(SAMPLES * WIDTH)])
        self.data = self.folder / "data.npz"
        write_npz(self.data, {"x": self.x, "labels": ("int64", (SAMPLES,), [values.randrange(WIDTH) for _ in range(SAMPLES)])})

    def test_training_equals_one_rank(self):
        reference = self.train(self.compile(self.path, "--stages=1", "--microbatches=8", "--batch=16"), self.data)
        for schedule, flags in pipelines(stages=4, microbatches=8):
            with self.subTest(schedule=schedule):
                plan = self.compile(self.path, *flags, "--microbatches=8", "--batch=16", "--cut=s0,s1,s2")
                self.assert_same_run(self.train(plan, self.data), reference, schedule)

    def test_late_updates(self):
        """pipedream-2bw equals itself on one rank; what pipedream learns is compared in B32, here it comes to its end."""
        cut = "--cut=s0,s1,s2"
        two = [self.compile(self.path, "--schedule=pipedream-2bw", "--microbatches=8", "--batch=16", *flags)
               for flags in (["--stages=1"], ["--stages=4", cut])]
        self.assert_same_run(self.train(two[1], self.data), self.train(two[0], self.data), "pipedream-2bw")
        run = self.train(self.compile(self.path, "--schedule=pipedream", "--stages=4", cut), self.data)
        self.assertEqual(len(run.losses), SAMPLES)

    def test_inference_equals_one_rank(self):
        write_npz(self.data, {"x": self.x})
        results = []
        for stages, cut in ((1, []), (4, ["--cut=s0,s1,s2"])):
            plan = self.compile(self.path, "--mode=infer", f"--stages={stages}", "--microbatches=8", "--batch=16", *cut)
            outputs = self.folder / f"out{stages}.npz"
            self.run_tool("piperun", plan, f"--data={self.data}", f"--outputs={outputs}", "--threads=1", "--timeout=30")
            results.append(read_npz(outputs))
        self.assertEqual(results[0], results[1])
        self.assertEqual(results[0]["y"][1], (SAMPLES, WIDTH))


if __name__ == "__main__":
    main()
