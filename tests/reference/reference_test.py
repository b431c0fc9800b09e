"""pipec against PyTorch: the same initial values and data give the same losses and the same parameters after 10 steps."""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from pipec_testing import Case, floats, main, read_safetensors, relative_difference

# The norm of the difference over the norm, per tensor: AdamW divides by the root of a squared gradient, which blows
# rounding up where gradients are small.
TOLERANCE = {"momentum": 1e-5, "adamw": 1e-3}
FLAGS = {"momentum": ["--momentum=0.9", "--weight-decay=0"], "adamw": ["--eps=1e-6"]}


class Reference(Case):
    def test_losses_and_parameters(self):
        numbers = json.loads((HERE / "numbers.json").read_text())
        self.assertEqual(len(numbers["losses"]), 4)
        for case, losses in numbers["losses"].items():
            name, optimizer = case.split("-")
            want = read_safetensors(HERE / f"{case}.safetensors")
            self.assertLess(losses[-1], 0.8 * losses[0], f"{case}: the reference learns nothing")
            for stages, microbatches in ((1, 1), (1, 4), (2, 4), (4, 16)):
                with self.subTest(case=case, stages=stages, microbatches=microbatches):
                    plan = self.compile(HERE / f"{name}.onnx", f"--stages={stages}", f"--microbatches={microbatches}",
                                        "--batch=16", f"--optimizer={optimizer}")
                    run = self.train(plan, HERE / f"{name}.npz", "--epochs=10", f"--lr={numbers['rates'][case]}", *FLAGS[optimizer])
                    self.assertEqual(len(run.losses), 10)
                    for got, loss in zip(run.losses, losses):
                        self.assertAlmostEqual(got / loss, 1, delta=1e-5)
                    self.assertEqual(set(run.tensors), set(want))
                    for parameter, (_, shape, data) in want.items():
                        self.assertEqual(run.tensors[parameter][1], shape)
                        difference = relative_difference(floats(run.tensors[parameter][2]), floats(data))
                        self.assertLess(difference, TOLERANCE[optimizer], parameter)


if __name__ == "__main__":
    main()
