"""Optimizers, their settings and learning rate schedules against PyTorch's numbers (make_optimizers.py)."""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from pipec_testing import Case, floats, main, model_text, relative_difference, write_npz

NUMBERS = json.loads((HERE / "optimizers.json").read_text())


def flags_of(case):
    """piperun's flags for a case of make_optimizers.py."""
    flags = []
    for flag, key in (("lr", "lr"), ("weight-decay", "weight_decay"), ("momentum", "momentum"), ("eps", "eps"),
                      ("clip-norm", "clip_norm"), ("clip-value", "clip_value"), ("lr-schedule", "schedule"),
                      ("warmup-steps", "warmup")):
        if key in case:
            flags.append(f"--{flag}={case[key]}")
    for flag, value in zip(("beta1", "beta2"), case.get("betas", [])):
        flags.append(f"--{flag}={value}")
    for name, settings in case.get("groups", {}).items():
        flags += [f"--{key.replace('_', '-')}={name}={value}" for key, value in settings.items()]
    return flags


class Optimizers(Case):
    def test_every_case(self):
        values, data = NUMBERS["values"], self.folder / "data.npz"
        weights = [f"float[{','.join(map(str, shape))}] {name.replace('.', '_')} = {{{', '.join(map(str, numbers))}}}"
                   for name, (shape, numbers) in values.items()]
        model = self.write("model.onnxtxt", model_text(
            ["float[N,5] x"], ["float[N,3] y"], weights,
            ["a = MatMul(x, body_weight)", "s = Add(a, body_bias)", "h = Tanh(s)", "y = MatMul(h, head_weight)"]))
        write_npz(data, {name: ("float32", tuple(shape), numbers) for name, (shape, numbers) in NUMBERS["data"].items()})
        plans = {}
        for name, case in NUMBERS["cases"].items():
            optimizer = case["optimizer"]
            if optimizer not in plans:
                plans[optimizer] = self.compile(model, "--stages=2", "--microbatches=4", f"--batch={NUMBERS['batch']}",
                                                f"--optimizer={optimizer}", "--loss=mse")
            with self.subTest(case=name):
                run = self.train(plans[optimizer], data, *flags_of(case), steps=NUMBERS["steps"])
                rates = [json.loads(line)["lr"] for line in run.metrics.splitlines()]
                for got, want in zip(run.losses, case["losses"], strict=True):
                    self.assertAlmostEqual(got / want, 1, delta=1e-5)
                for got, want in zip(rates, case["rates"], strict=True):
                    self.assertAlmostEqual(got, want, delta=1e-9 + 1e-7 * want)
                for parameter, numbers in case["parameters"].items():
                    got = floats(run.tensors[parameter.replace(".", "_")][2])
                    adaptive = optimizer.startswith("ada")
                    self.assertLess(relative_difference(got, numbers), 1e-4 if adaptive else 1e-5, parameter)


if __name__ == "__main__":
    main()
