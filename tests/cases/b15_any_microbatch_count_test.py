"""B15: every microbatch count runs on every schedule, or is refused by the compiler with the rule that limits it."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, listed_schedules, main, model_text, read_npz, schedules, write_npz

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

    def test_every_count_in_inference(self):
        path = self.write("mlp.onnxtxt", mlp(8))
        values = Weights(3).random
        for microbatches in (1, 2, 3, 4, 5):
            samples = 3 * microbatches - 1  # the last batch is not full
            data = self.folder / "data.npz"
            write_npz(data, {"h0": ("float32", (samples, WIDTH), [values.gauss(0, 1) for _ in range(samples * WIDTH)])})
            results = []
            for shape in (["--stages=1"], [f"--stages={STAGES}"], ["--stages=2", "--virtual-stages=3"]):
                plan = self.compile(path, "--mode=infer", f"--microbatches={microbatches}", *shape)
                outputs = self.folder / "outputs.npz"
                self.run_tool("piperun", plan, f"--data={data}", f"--outputs={outputs}", "--threads=1", "--timeout=30")
                results.append(read_npz(outputs))
            self.assertEqual(results[0]["h8"][1], (samples, WIDTH))
            self.assertEqual(results[1], results[0], f"{microbatches} microbatches")
            self.assertEqual(results[2], results[0], f"{microbatches} microbatches, three stages a rank")

    def test_late_updates(self):
        path = self.write("mlp.onnxtxt", mlp(8))
        values = Weights(2).random
        for microbatches in (1, 2, 3, 4, 5):
            samples, data = 3 * microbatches, self.folder / "data.npz"
            write_npz(data, {"h0": ("float32", (samples, WIDTH), [values.gauss(0, 1) for _ in range(samples * WIDTH)]),
                             "labels": ("int64", (samples,), [values.randrange(WIDTH) for _ in range(samples)])})
            ran = []
            for schedule in listed_schedules(late=True):
                flags = [f"--schedule={schedule}", f"--microbatches={microbatches}"]
                done = self.run_tool("pipec", path, "-o", self.folder / "try.plan", f"--stages={STAGES}", *flags, expect=None)
                if done.returncode:
                    self.assertEqual(done.returncode, 1)
                    self.assertIn("microbatches", done.stderr)
                    continue
                ran.append(schedule)
                run = self.train(self.folder / "try.plan", data)
                self.assertEqual(len(run.losses), 3)
                if schedule == "pipedream-2bw":
                    self.assert_same_run(run, self.train(self.compile(path, "--stages=1", *flags), data), schedule)
            wanted = ["pipedream"] if microbatches == 1 else ["pipedream-2bw"] if microbatches >= STAGES else []
            self.assertEqual(ran, wanted, microbatches)


if __name__ == "__main__":
    main()
