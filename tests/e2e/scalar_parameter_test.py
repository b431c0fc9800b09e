"""A PyTorch parameter of shape [] learns as others do, and is exported."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, floats, main, model_text, write_npz

X = [1.0, -2.0, 0.5, 3.0, 4.0, -1.0, 2.5, 0.25]
G, H, RATE = 0.5, 2.0, 0.01


class ScalarParameter(Case):
    def test_it_learns(self):
        text = model_text(["float[N,2] x"], ["float[N,2] y"], [f"float g = {{{G}}}", f"float[2] h = {{{H}, {H}}}"],
                          ["a = Mul(x, g)", "y = Add(a, h)"])
        model = self.write("model.onnxtxt", text.replace("ir_version: 10", 'ir_version: 10, producer_name: "pytorch"'))
        write_npz(self.folder / "data.npz", {"x": ("float32", (4, 2), X), "labels": ("float32", (4, 2), [0.0] * 8)})
        for stages in (1, 2):
            for microbatches in (1, 2):
                plan = self.compile(model, f"--stages={stages}", "--batch=4", f"--microbatches={microbatches}",
                                    "--optimizer=sgd", "--loss=mse")
                run = self.train(plan, self.folder / "data.npz", f"--lr={RATE}", steps=1)
                gradient = sum(2 * (G * x + H) * x for x in X) / len(X)
                descr, shape, data = run.tensors["g"]
                self.assertEqual(list(shape), [])
                self.assertAlmostEqual(floats(data)[0], G - RATE * gradient, places=6)


if __name__ == "__main__":
    main()
