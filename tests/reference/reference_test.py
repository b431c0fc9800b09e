"""pipec against PyTorch: the same initial values and data give the same losses and the same parameters after 20 steps."""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from pipec_testing import Case, floats, main, read_safetensors, relative_difference

# How make-model makes each model, --seed=1 --batch=symbolic.
MODELS = {
    "mlp": ["--layers=4", "--inputs=16", "--hidden=32", "--classes=10"],
    "cnn": ["--layers=4", "--image=1x8x8", "--hidden=8", "--classes=10"],
    "resnet": ["--layers=2", "--image=1x48x48", "--hidden=4", "--classes=10"],
    "unet": ["--layers=2", "--image=1x16x16", "--hidden=4", "--classes=3"],
    "lstm": ["--layers=2", "--hidden=24", "--sequence=16", "--vocabulary=64"],
    "gpt": ["--layers=2", "--hidden=32", "--heads=4", "--sequence=16", "--vocabulary=64"],
    "bert": ["--layers=2", "--hidden=24", "--heads=4", "--sequence=16", "--vocabulary=64"],
    "llama": ["--layers=2", "--hidden=32", "--heads=8", "--sequence=16", "--vocabulary=64"],
}
STEPS = 20
# The norm of the difference over the norm, per tensor: AdamW divides by the root of a squared gradient, which blows
# rounding up where gradients are small.
TOLERANCE = {"momentum": 1e-5, "adamw": 1e-3}
# Its gradient is zero but for rounding: the softmax does not see it.
KEY_BIAS = "attention.self.key.bias"
FLAGS = {"momentum": ["--momentum=0.9", "--weight-decay=0"], "adamw": ["--eps=1e-6"]}


class Reference(Case):
    def test_losses_and_parameters(self):
        numbers = json.loads((HERE / "numbers.json").read_text())
        self.assertEqual(set(numbers["losses"]), {f"{name}-{optimizer}" for name in MODELS for optimizer in FLAGS})
        for case, losses in numbers["losses"].items():
            name, optimizer = case.split("-")
            want = read_safetensors(HERE / f"{case}.safetensors")
            self.assertEqual(len(losses), STEPS)
            self.assertLess(losses[-1], 0.8 * losses[0], f"{case}: the reference learns nothing")
            # Statistics of a batch are those of its microbatches, so with those their number is PyTorch's.
            fixed = numbers["microbatches"].get(name)
            for stages, microbatches in ((1, fixed), (2, fixed), (4, fixed)) if fixed else ((1, 1), (2, 4), (4, 16)):
                with self.subTest(case=case, stages=stages, microbatches=microbatches):
                    plan = self.compile(HERE / f"{name}.onnx", f"--stages={stages}", f"--microbatches={microbatches}",
                                        "--batch=16", f"--optimizer={optimizer}")
                    run = self.train(plan, HERE / f"{name}.npz", f"--epochs={STEPS}", f"--lr={numbers['rates'][case]}",
                                     *FLAGS[optimizer])
                    self.assertEqual(len(run.losses), STEPS)
                    for got, loss in zip(run.losses, losses):
                        self.assertAlmostEqual(got / loss, 1, delta=1e-5)
                    self.assertEqual(set(run.tensors), set(want))
                    for parameter, (_, shape, data) in want.items():
                        self.assertEqual(run.tensors[parameter][1], shape)
                        if parameter.endswith(KEY_BIAS):
                            self.assertLess(max(map(abs, floats(run.tensors[parameter][2]) + floats(data))), 1e-3, parameter)
                            continue
                        difference = relative_difference(floats(run.tensors[parameter][2]), floats(data))
                        self.assertLess(difference, TOLERANCE[optimizer], parameter)

    def test_the_models_are_what_make_model_makes(self):
        for name, flags in MODELS.items():
            with self.subTest(name=name):
                self.run_tool("make-model", name, *flags, "--batch=symbolic", "--seed=1", "-o", f"{name}.onnx")
                made, kept = (self.run_tool("pipec", path, "--print=model", "--stages=1").stdout
                              for path in (f"{name}.onnx", HERE / f"{name}.onnx"))
                self.assertEqual(made, kept)


if __name__ == "__main__":
    main()
