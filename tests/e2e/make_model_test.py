"""make-model: every kind trains, in every cut with the same numbers; the parameters are PyTorch's; what does not fit is refused."""

import itertools
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, elements, floats, main, read_safetensors, schedules, write_npz

TEXT = {"input_ids": ("int64", (8,), 16), "labels": ("int64", (8,), 16)}
IMAGES = {"x": ("float32", (3, 16, 16), None), "labels": ("int64", (), 4)}
SMALL = ["--layers=2", "--hidden=16", "--sequence=8", "--vocabulary=16"]
# Kind -> flags, and the data of a sample: type, shape, and the bound of integers.
KINDS = {
    "mlp": (["--layers=5", "--inputs=6", "--hidden=16", "--classes=4"], {"x": ("float32", (6,), None), "labels": ("int64", (), 4)}),
    "cnn": (["--image=3x16x16", "--hidden=8", "--classes=4", "--dropout=0.1"], IMAGES),
    "resnet": (["--image=3x16x16", "--hidden=8", "--classes=4"], IMAGES),
    "unet": (["--image=3x16x16", "--hidden=4", "--classes=3"], {"x": IMAGES["x"], "labels": ("int64", (16, 16), 3)}),
    "lstm": ([*SMALL, "--dropout=0.1"], TEXT),
    "gpt": ([*SMALL, "--heads=2", "--dropout=0.1"], TEXT),
    "bert": ([*SMALL, "--heads=2", "--dropout=0.1"], {**TEXT, "token_type_ids": ("int64", (8,), 2)}),
    "llama": ([*SMALL, "--heads=4"], TEXT),
}
# Preset -> kind, and how many numbers its parameters have in PyTorch. Running statistics are parameters too.
PRESETS = {
    "gpt-tiny": ("gpt", 210_304), "gpt-6": ("gpt", 10_844_160), "llama-tiny": ("llama", 3_082_496), "bert-6": ("bert", 14_000_000),
    "lstm-2": ("lstm", 1_184_000), "resnet18-64": ("resnet", 11_181_642 + 9_600), "unet-64": ("unet", 1_927_042 + 2_816),
    "gpt-124m": ("gpt", 124_439_808), "gpt-3": ("gpt", 174_604_259_328),
}
NORMS = [(r"(bn\d|downsample\.1|double_conv\.[14]|ln_\w+|LayerNorm|layernorm|norm)\.(weight|running_var)", "ones", 1),
         (r"(bn\d|downsample\.1|double_conv\.[14]|ln_\w+|LayerNorm)\.(bias|running_mean)", "zeros", 1)]
# Kind -> how the parameters that match start; the others as nn.Linear and nn.Conv2d do.
STARTS = {
    "mlp": [], "cnn": [], "unet": NORMS,
    # torchvision's: He's normal distribution by the outputs.
    "resnet": [*NORMS, (r"conv\d|downsample\.0", "normal", lambda shape: (2 / (shape[0] * elements(shape[2:]))) ** 0.5)],
    "lstm": [("encoder", "normal", 1), ("rnn", "uniform", 32**-0.5)],
    "gpt": [*NORMS, ("wpe", "normal", 0.02)],
    # Hugging Face's.
    "bert": [*NORMS, (r"\.bias", "zeros", 1), ("", "normal", 0.02)],
    "llama": [*NORMS, ("", "normal", 0.02)],
}
SMALL_PRESETS = ["gpt-tiny", "llama-tiny", "lstm-2", "unet-64"]
SAMPLES = 16


class MakeModel(Case):
    def data(self, samples):
        values, arrays = Weights(5).random, {}
        for name, (dtype, shape, bound) in samples.items():
            count = SAMPLES * elements(shape)
            draw = (lambda: values.gauss(0, 1)) if bound is None else (lambda: values.randrange(bound))
            arrays[name] = (dtype, (SAMPLES, *shape), [draw() for _ in range(count)])
        path = self.folder / "data.npz"
        write_npz(path, arrays)
        return path

    def test_every_kind_learns_with_the_same_numbers_in_every_cut(self):
        for kind, (flags, samples) in KINDS.items():
            with self.subTest(kind=kind):
                self.run_tool("make-model", kind, *flags, "--batch=symbolic", "-o", "model.onnx")
                data, common = self.data(samples), ["--microbatches=8", f"--batch={SAMPLES}"]
                whole = self.compile("model.onnx", "--stages=1", *common)
                losses = self.train(whole, data, "--epochs=40", "--lr=0.01", "--seed=1").losses
                self.assertLess(losses[-1], 0.8 * losses[0])
                reference = self.train(whole, data, "--epochs=2", "--lr=0.01", "--seed=1")
                for stages, recompute in itertools.product((1, 2, 4), ("none", "all")):
                    for schedule in schedules(stages, microbatches=8):
                        plan = self.compile("model.onnx", f"--stages={stages}", f"--schedule={schedule}",
                                            f"--recompute={recompute}", *common)
                        run = self.train(plan, data, "--epochs=2", "--lr=0.01", "--seed=1")
                        self.assert_same_run(run, reference, f"{kind} {schedule} P={stages} recompute {recompute}")

    def test_small_presets_train_with_the_same_numbers_in_every_cut(self):
        for preset in SMALL_PRESETS:
            with self.subTest(preset=preset):
                self.run_tool("make-model", PRESETS[preset][0], f"--preset={preset}", "-o", "model.onnx")
                runs = []
                for stages in (1, 2, 4):
                    plan = self.compile("model.onnx", f"--stages={stages}", "--microbatches=2")
                    runs.append(self.train(plan, "synthetic", steps=2))
                    self.assert_same_run(runs[-1], runs[0], f"{preset} P={stages}")
                self.assertEqual(len(set(runs[0].losses)), 2)

    def test_presets_have_the_parameters_of_pytorch(self):
        for preset, (kind, parameters) in PRESETS.items():
            with self.subTest(preset=preset):
                self.run_tool("make-model", kind, f"--preset={preset}", "--no-weights", "-o", "model.onnx")
                done = self.run_tool("pipec", "model.onnx", "--stages=1", "--dry-run", "--json", "--memory=8TB")
                self.assertEqual(sum(stage["parameters"] for stage in json.loads(done.stdout)["stages"]), parameters)

    def test_parameters_start_as_in_pytorch(self):
        for kind, starts in STARTS.items():
            flags = [f"--{flag}=32" for flag in ("hidden", "vocabulary") if flag == "hidden" or "--vocabulary=16" in KINDS[kind][0]]
            self.run_tool("make-model", kind, *flags, "-o", "model.onnx")
            plan = self.compile("model.onnx", "--stages=1", "--mode=infer")
            tensors = {}
            for file in (plan / "parameters").glob("*.safetensors"):
                tensors.update(read_safetensors(file))
            self.assertGreaterEqual(len(tensors), 8)
            for name, (_, shape, data) in tensors.items():
                with self.subTest(kind=kind, name=name):
                    values = floats(data)
                    weight = tensors[name.replace("bias", "weight")][1] if kind != "bert" and "rnn" not in name else shape
                    default = ("", "uniform", elements(weight[1:]) ** -0.5)
                    start, scale = next(rule[1:] for rule in [*starts, default] if re.search(rule[0], name))
                    self.assert_distribution(values, start, scale(shape) if callable(scale) else scale)

    def assert_distribution(self, values, start, scale):
        """Within five standard errors."""
        if start in ("ones", "zeros"):
            self.assertEqual(set(values), {float(start == "ones")})
            return
        square, error = scale**2, 2**0.5 / len(values) ** 0.5  # the variance, and its relative error
        if start == "uniform":
            self.assertLessEqual(max(map(abs, values)), scale)
            square, error = square / 3, (4 / 5) ** 0.5 / len(values) ** 0.5
        elif len(values) > 1000:
            self.assertGreater(max(map(abs, values)), 2.5 * scale)
        self.assertLess(abs(sum(values) / len(values)), 5 * (square / len(values)) ** 0.5)
        self.assertAlmostEqual(sum(v * v for v in values) / len(values) / square, 1, delta=5 * error)

    def test_what_does_not_fit_is_refused(self):
        for flags, message in (
                (["mlp", "--heads=2"], "mlp has no --heads; it has --layers, --hidden, --inputs, --classes, --skips, --batch"),
                (["llama", "--dropout=0.1"], "llama has no --dropout"),
                (["gpt", "--image=1x8x8"], "gpt has no --image"),
                (["gpt", "--skips"], "gpt has no --skips"),
                (["vgg"], "unknown kind 'vgg'; there are mlp, cnn, resnet, unet, lstm, gpt, bert, llama"),
                (["gpt", "--preset=bert-6"], "--preset=bert-6 is a bert, not a gpt"),
                (["bert", "--heads=3"], "--hidden=128 is not a multiple of --heads=3"),
                (["llama", "--heads=16", "--hidden=80"], "a head's features are turned in pairs"),
                (["llama", "--heads=9", "--hidden=72"], "must be a multiple of 4"),
                (["cnn", "--image=1x8x6"], "--layers=4 halves the image more often than 8x6 (--image) allows; --layers=3 fits"),
                (["unet", "--image=3x20x32", "--layers=3"], "--layers=3 halvings do not divide the 20x32 of --image"),
                (["cnn", "--layers=32", "--image=1x65536x65536", "--hidden=16777216"], "has more than")):
            with self.subTest(flags=flags):
                self.assertIn(message, self.run_tool("make-model", *flags, "-o", "model.onnx", expect=1).stderr)
                self.assertEqual(list(self.folder.iterdir()), [])
        for image in ("3x64", "0x8x8", "3x64x64x1", "axbxc", "1x65537x8"):
            done = self.run_tool("make-model", "cnn", f"--image={image}", expect=2)
            self.assertIn(f"--image: '{image}' is no CxHxW of numbers from 1 to 65536, as in 3x64x64", done.stderr)


if __name__ == "__main__":
    main()
