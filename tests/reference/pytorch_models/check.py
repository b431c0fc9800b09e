"""pipec trains what PyTorch exported, PyTorch takes the result back.

    PYTHON check.py     PIPEC_BIN: where pipec and piperun are

For each model of tests/data/pytorch: a few steps, --export, load_state_dict(strict=True) of model.safetensors into a new
module, and the module's results compared with those of model.onnx in onnxruntime.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import models
import numpy
import onnxruntime
import torch
from safetensors.torch import load_file

DATA = pathlib.Path(__file__).resolve().parents[2] / "data/pytorch"
BIN = pathlib.Path(os.environ.get("PIPEC_BIN", DATA.parents[2] / "build/release/bin"))
# Their exporter folded the BatchNormalizations into the convolutions.
FOLDED = {"resnet-torchscript", "resnet-dynamo"}


def run(tool, *arguments):
    done = subprocess.run([BIN / tool, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])


def compile_plan(path, plan, *flags):
    """Which parameters learn: where an op has no gradient yet, those behind it."""
    try:
        run("pipec", path, "-o", plan, *flags)
        return "all"
    except RuntimeError as error:
        if "no gradient rule" not in str(error):
            raise
    run("pipec", path, "-o", plan, "--train=classifier.*", *flags)
    return "the classifier"


def check(path, folder):
    """The largest difference between the module's results and those of the exported model, how far training went, and what
    learned."""
    name, plan, export = path.stem.split("-")[0], folder / "plan", folder / "export"
    static, sequence, fresh = (path.stem.endswith(suffix) for suffix in ("-static", "-sequence", "-fresh"))
    arguments = models.inputs(name)
    model = models.build(name, fresh)
    before = models.logits(model, arguments)
    numpy.savez(folder / "data.npz", labels=models.labels(name, before).numpy(), **{k: v.numpy() for k, v in arguments.items()})
    flags = ["--batch=4", f"--microbatches={1 if static else 2}", *(["--dim=sequence=8"] if sequence else [])]
    learns = compile_plan(path, plan, *flags)
    run("piperun", plan, f"--data={folder / 'data.npz'}", "--epochs=5", "--lr=0.01", f"--export={export}")
    model.load_state_dict(load_file(export / "model.safetensors"), strict=True)
    model.train(path.stem == "resnet-torchscript-train")  # exported so
    after = models.logits(model, arguments)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # it warns of initializers without use: second names, counters
    session = onnxruntime.InferenceSession(str(export / "model.onnx"), options, providers=["CPUExecutionProvider"])
    (exported,) = session.run(["logits"], {k: v.numpy() for k, v in arguments.items()})
    return float(abs(after - torch.from_numpy(exported)).max()), float(abs(after - before).max()), learns


def main():
    failed = 0
    for path in sorted(DATA.glob("*.onnx")):
        if path.stem in FOLDED:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                difference, learned, learns = check(path, pathlib.Path(folder))
            except Exception as error:  # noqa: BLE001: any refusal is the answer for this model
                print(f"{path.stem}: FAILED: {str(error)[:300]}")
                failed += 1
                continue
        good = difference < 1e-4 < learned
        failed += not good
        print(f"{path.stem}: {'ok' if good else 'FAILED'}, module and exported model differ by {difference:.1e}, training {learns} "
              f"changed {learned:.1e}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
