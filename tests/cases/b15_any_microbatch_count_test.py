"""B15: every microbatch count runs on every schedule, or is refused by the compiler with the rule that limits it."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, main, model_text, schedules, write_npz

WIDTH, STAGES = 4, 4


def mlp(layers):
    w, nodes, initializers = Weights(), [], []
    for i in range(layers):
        initializers += [w.tensor(f"w{i}", WIDTH, WIDTH), w.tensor(f"b{i}", WIDTH)]
        nodes += [f"g{i} = Gemm(h{i}, w{i}, b{i})", f"h{i + 1} = Tanh(g{i})"]
    return model_text([f"float[N,{WIDTH}] h0"], [f"float[N,{WIDTH}] h{layers}"], initializers, nodes)


class B15(Case):
    def test_every_count_and_schedule(self):
        path = self.write("mlp.onnxtxt", mlp(8))
        values = Weights(2).random
        for microbatches in (1, 2, 3, 4, 5):
            samples = 3 * microbatches
            data = self.folder / "data.npz"
            write_npz(data, {"h0": ("float32", (samples, WIDTH), [values.gauss(0, 1) for _ in range(samples * WIDTH)]),
                             "labels": ("int64", (samples,), [values.randrange(WIDTH) for _ in range(samples)])})
            reference = self.train(self.compile(path, "--stages=1", f"--microbatches={microbatches}"), data)
            for schedule in schedules():
                with self.subTest(schedule=schedule, microbatches=microbatches):
                    flags = [f"--stages={STAGES}", f"--schedule={schedule}", f"--microbatches={microbatches}"]
                    done = self.run_tool("pipec", path, "-o", self.folder / "try.plan", *flags, expect=None)
                    if done.returncode == 0:
                        self.assert_same_run(self.train(self.folder / "try.plan", data), reference, schedule)
                    else:
                        self.assertNotIn(schedule, ("gpipe", "1f1b"), done.stderr)
                        self.assertEqual(done.returncode, 1)
                        self.assertIn("microbatches", done.stderr)


if __name__ == "__main__":
    main()
