"""Models that PyTorch exported: they compile without flags, compute what PyTorch computes, and give back a state_dict."""

import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import ROOT, Case, floats, main, read_npz, read_safetensors, relative_difference, write_npz

DATA = ROOT / "tests/data/pytorch"
MODELS = sorted(path.stem for path in DATA.glob("*.onnx"))
# Their exporter folded the BatchNormalizations into the convolutions: there is no state_dict to give back.
FOLDED = {"resnet-torchscript", "resnet-dynamo"}
# A buffer of PyTorch's module, which TorchScript does not tell from a parameter.
BUFFERS = {"nested": ["--freeze=^table$"]}
# Their gradients are zero: a bias of keys moves all scores of a row alike; the last step of a sequence, which is all that
# the classifier reads, is the first of the reversed direction, where the state is zero.
STANDS_STILL = ("key.bias", "k_proj.bias", "weight_hh_l1_reverse", "table")


def reference(model):
    """Path, without suffix, of what PyTorch says about the model."""
    return DATA / (model.split("-")[0] + ("-fresh" if model.endswith("-fresh") else ""))


def dimensions(model):
    return ["--dim", "sequence=8"] if model.endswith("-sequence") else []


class PyTorchModels(Case):
    def samples(self, model, repeat=1):
        """The inputs and labels as a file, each `repeat` times."""
        arrays = {}
        for name, (descr, shape, data) in read_npz(f"{reference(model)}.npz").items():
            if name == "logits":
                continue
            dtype, code = {"<f4": ("float32", "f"), "<i8": ("int64", "q")}[descr]
            values = struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data)
            arrays[name] = (dtype, (shape[0] * repeat, *shape[1:]), values * repeat)
        path = self.folder / f"{model}-{repeat}.npz"
        write_npz(path, arrays)
        return path

    def train_steps(self, model, steps, *flags, optimizer="adamw"):
        microbatches = 1 if model.endswith("-static") else 2
        plan = self.compile(DATA / f"{model}.onnx", "--batch=4", f"--microbatches={microbatches}",
                            f"--optimizer={optimizer}", *BUFFERS.get(model.split("-")[0], []),
                            *dimensions(model))
        return self.train(plan, self.samples(model), f"--epochs={steps}", *flags)

    def test_there_are_all_models(self):
        self.assertGreaterEqual({f"{name}-{exporter}" for name in ("gpt2", "llama", "bert", "vit", "resnet", "lstm")
                                 for exporter in ("torchscript", "dynamo")} - set(MODELS), set())
        self.assertGreaterEqual(len(MODELS), 12)

    def test_results_are_pytorchs(self):
        for model in MODELS:
            # BatchNormalization in training form computes with the batch's statistics.
            if model == "resnet-torchscript-train":
                continue
            with self.subTest(model=model):
                plan = self.compile(DATA / f"{model}.onnx", "--mode=infer", *dimensions(model))
                outputs = self.folder / f"{model}.npz"
                self.run_tool("piperun", plan, f"--data={reference(model)}.npz", f"--outputs={outputs}", "--threads=1")
                _, want_shape, want = read_npz(f"{reference(model)}.npz")["logits"]
                _, shape, got = read_npz(outputs)["logits"]
                self.assertEqual(shape, want_shape)
                for a, b in zip(floats(got), floats(want)):
                    self.assertLessEqual(abs(a - b), 1e-5 + 1e-4 * abs(b))

    def test_trains_without_flags(self):
        for model in MODELS:
            with self.subTest(model=model):
                plan = self.compile(DATA / f"{model}.onnx", *dimensions(model))
                repeat = 32 if model.endswith("-static") else 8
                run = self.train(plan, self.samples(model, repeat), "--epochs=4", "--lr=0.01")
                self.assertEqual(len(run.losses), 4)
                self.assertLess(run.losses[-1], run.losses[0])

    def test_export_is_the_state_dict(self):
        for model in MODELS:
            if model in FOLDED:
                continue
            with self.subTest(model=model):
                # Running statistics move whatever the rate is.
                run = self.train_steps(model, 1, "--lr=0")
                want = read_safetensors(f"{reference(model)}.safetensors")
                self.assertEqual(sorted(run.tensors), sorted(want))
                for name, (dtype, shape, data) in want.items():
                    self.assertEqual(run.tensors[name][:2], (dtype, shape), name)
                    if not name.endswith(("running_mean", "running_var")):
                        self.assertEqual(run.tensors[name][2], data, name)

    def test_both_exporters_train_alike(self):
        """The same data, rate and steps: the same parameters, whatever the exporter did to them."""
        for name in ("gpt2", "llama", "bert", "vit", "lstm", "nested"):
            runs = {}
            for exporter in ("torchscript", "dynamo"):
                runs[exporter] = self.train_steps(f"{name}-{exporter}", 3, "--lr=0.1", optimizer="momentum")
            before = read_safetensors(f"{reference(name)}.safetensors")
            for key, (_, _, data) in runs["torchscript"].tensors.items():
                with self.subTest(model=name, parameter=key):
                    other = floats(runs["dynamo"].tensors[key][2])
                    self.assertLess(relative_difference(floats(data), other), 1e-4)
                    if not key.endswith(STANDS_STILL):
                        self.assertNotEqual(data, before[key][2], "it does not learn")

    def test_shared_weights_stay_shared(self):
        for model in ("gpt2-torchscript", "gpt2-dynamo"):
            with self.subTest(model=model):
                tensors = self.train_steps(model, 3, "--lr=0.01").tensors
                before = read_safetensors(f"{reference(model)}.safetensors")
                self.assertEqual(tensors["lm_head.weight"], tensors["transformer.wte.weight"])
                self.assertNotEqual(tensors["lm_head.weight"], before["lm_head.weight"])

    def test_merged_biases_learn_apart(self):
        for model in ("bert-torchscript-fresh", "bert-dynamo-fresh"):
            with self.subTest(model=model):
                tensors = self.train_steps(model, 2, "--lr=0.01").tensors
                biases = [data for name, (_, shape, data) in tensors.items() if name.endswith(".bias") and shape == [16]]
                self.assertEqual(len(biases), len(set(biases)))

    def test_a_symbolic_sequence_is_asked_for(self):
        message = self.compile(DATA / "llama-dynamo-sequence.onnx", expect=1)
        self.assertIn("--dim sequence=N", message)

    def test_names_are_known_to_flags(self):
        plan = self.compile(DATA / "bert-torchscript.onnx", "--batch=4", "--microbatches=2", r"--train=classifier\..*")
        tensors = self.train(plan, self.samples("bert-torchscript"), "--epochs=1", "--lr=0.01").tensors
        before = read_safetensors(DATA / "bert.safetensors")
        changed = {name for name in before if tensors[name] != before[name]}
        self.assertEqual(changed, {"classifier.weight", "classifier.bias"})


if __name__ == "__main__":
    main()
