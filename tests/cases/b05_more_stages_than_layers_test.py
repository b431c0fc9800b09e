"""B05: a stage count that does not divide the layers leaves no stage empty; too many stages are refused."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, main, model_text, write_npz

# Wide enough that a layer outweighs a message: with tiny layers a stage at the end, with one message less, earns a layer more.
LAYERS, WIDTH = 42, 64


def layers(count):
    weights, nodes, initializers, x = Weights(), [], [], "x"
    for i in range(count):
        initializers += [weights.tensor(f"w{i}", WIDTH, WIDTH), weights.tensor(f"b{i}", WIDTH)]
        nodes += [f"h{i} = Gemm(x{i}, w{i}, b{i})" if i else f"h0 = Gemm(x, w0, b0)", f"x{i + 1} = Relu(h{i})"]
    return model_text([f"float[N,{WIDTH}] x"], [f"float[N,{WIDTH}] x{count}"], initializers, nodes)


class B05(Case):
    def setUp(self):
        super().setUp()
        self.model = self.write("model.onnxtxt", layers(LAYERS))

    def test_sixteen_stages_hold_two_or_three_layers_each(self):
        # So many that only the slowest stage counts.
        done = self.run_tool("pipec", self.model, "--stages=16", "--microbatches=64", "--dry-run", "--json")
        rows = json.loads(done.stdout)["stages"]
        per_layer = WIDTH * WIDTH + WIDTH
        held = [row["parameters"] / per_layer for row in rows]
        self.assertEqual(len(held), 16)
        self.assertEqual(sum(held), LAYERS)
        self.assertLessEqual(set(held), {2, 3})

    def test_too_many_stages_are_refused_with_the_most_possible(self):
        for stages in (500, 2 * LAYERS + 50):
            message = self.compile(self.model, f"--stages={stages}", expect=1)
            self.assertEqual(len(message.strip().splitlines()), 1, message)
            self.assertIn(str(stages), message)
            most = max(int(word) for word in message.replace(",", " ").split() if word.isdigit() and int(word) != stages)
            self.assertGreaterEqual(most, LAYERS)
            self.compile(self.model, f"--stages={most}", "--microbatches=1")

    def test_one_stage_and_sixteen_train_alike(self):
        values = Weights(3).random
        data = self.folder / "data.npz"
        write_npz(data, {"x": ("float32", (8, WIDTH), [values.gauss(0, 1) for _ in range(8 * WIDTH)]),
                         "labels": ("int64", (8,), [values.randrange(WIDTH) for _ in range(8)])})
        runs = [self.train(self.compile(self.model, f"--stages={p}", "--microbatches=4"), data) for p in (1, 16)]
        self.assert_same_run(runs[1], runs[0], "16 stages")


if __name__ == "__main__":
    main()
