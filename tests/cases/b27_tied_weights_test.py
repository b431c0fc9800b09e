"""B27: an embedding that is also the head is one parameter: one gradient, one update, equal copies."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, main, model_text, pipelines, write_npz

WIDTH, VOCABULARY, SEQUENCE, SAMPLES = 6, 10, 5, 20


def model():
    w = Weights()
    initializers = [w.tensor("e", VOCABULARY, WIDTH), w.tensor("w1", WIDTH, WIDTH), w.tensor("w2", WIDTH, WIDTH)]
    nodes = ["h0 = Gather(e, ids)", "a1 = MatMul(h0, w1)", "h1 = Tanh(a1)", "a2 = MatMul(h1, w2)", "h2 = Tanh(a2)",
             "t = Transpose <perm = [1, 0]> (e)", "y = MatMul(h2, t)"]
    return model_text([f"int64[N,{SEQUENCE}] ids"], [f"float[N,{SEQUENCE},{VOCABULARY}] y"], initializers, nodes)


class B27(Case):
    def test_every_schedule_and_optimizer(self):
        values = Weights(2).random
        tokens = [values.randrange(VOCABULARY) for _ in range(SAMPLES * SEQUENCE)]
        data = self.folder / "data.npz"
        write_npz(data, {"ids": ("int64", (SAMPLES, SEQUENCE), tokens),
                         "labels": ("int64", (SAMPLES, SEQUENCE), tokens)})
        path = self.write("tied.onnxtxt", model())
        for optimizer in ("sgd", "adam", "momentum"):
            common = ["--microbatches=4", f"--optimizer={optimizer}"]
            reference = self.train(self.compile(path, "--stages=1", *common), data, "--clip-norm=0.5", "--lr=0.1")
            self.assertEqual(len(reference.losses), 5)
            self.assertLess(reference.losses[-1], reference.losses[0])
            for schedule, flags in pipelines(stages=4, microbatches=4):
                with self.subTest(schedule=schedule, optimizer=optimizer):
                    plan = self.compile(path, *flags, *common, "--cut=h0,h1,h2")
                    self.assert_same_run(self.train(plan, data, "--clip-norm=0.5", "--lr=0.1"), reference, schedule)

    def test_late_updates(self):
        values = Weights(2).random
        tokens = [values.randrange(VOCABULARY) for _ in range(SAMPLES * SEQUENCE)]
        data = self.folder / "data.npz"
        write_npz(data, {"ids": ("int64", (SAMPLES, SEQUENCE), tokens),
                         "labels": ("int64", (SAMPLES, SEQUENCE), tokens)})
        path = self.write("tied.onnxtxt", model())
        for optimizer in ("sgd", "adam"):
            common = ["--schedule=pipedream-2bw", "--microbatches=4", f"--optimizer={optimizer}"]
            runs = [self.train(self.compile(path, *flags, *common), data, "--clip-norm=0.5", "--lr=0.1")
                    for flags in (["--stages=1"], ["--stages=4", "--cut=h0,h1,h2"], ["--stages=2", "--cut=h1"])]
            for run in runs[1:]:
                self.assert_same_run(run, runs[0], optimizer)
        error = self.compile(path, "--schedule=pipedream", "--stages=4", "--cut=h0,h1,h2", expect=1)
        self.assertIn("cannot share parameter 'e'", error)


if __name__ == "__main__":
    main()
