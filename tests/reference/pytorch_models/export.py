"""Writes the .onnx files of tests/data/pytorch, and beside them what PyTorch makes of them.

    PYTHON export.py FOLDER

NAME-EXPORTER.onnx comes from torch.onnx.export with dynamo=False (torchscript) or dynamo=True (dynamo), batch dynamic, in
eval mode, as most users export; further variants are listed in VARIANTS. ARCHITECTURE.safetensors is the model's state_dict,
ARCHITECTURE.npz its inputs, labels, and, under the names of the outputs, PyTorch's results in eval mode.
"""

import inspect
import pathlib
import sys
import warnings

import models
import numpy
import onnx
import torch
from safetensors.torch import save_file

# What pipec reads of the metadata; the rest (stack traces with the exporter's folders, class names) is large.
KEPT_METADATA = {"pkg.torch.onnx.fx_node", "pkg.torch.onnx.name_scopes"}

# Suffix -> architectures and what differs.
VARIANTS = {
    "": (tuple(models.ARCHITECTURES), {}),
    "-static": (("bert",), {"dynamic": ()}),             # the batch is a number
    "-sequence": (("llama", "gpt2"), {"dynamic": (0, 1)}),  # the sequence is a symbol too
    "-train": (("resnet",), {"train": True}),            # training mode, nothing folded: BatchNormalization stays
    "-fresh": (("bert",), {"fresh": True}),              # zeros and ones, which exporters merge
}
SYMBOLS = {0: "batch", 1: "sequence"}


def export(name, exporter, path, dynamic=(0,), train=False, fresh=False):
    model = models.build(name, fresh).train(train)
    arguments = models.inputs(name)
    names = list(arguments)
    if exporter == "dynamo":
        shapes = {key: {axis: torch.export.Dim(SYMBOLS[axis]) for axis in dynamic} for key in names}
        torch.onnx.export(model, (), path, kwargs=arguments, dynamo=True, input_names=names, output_names=["logits"],
                          dynamic_shapes=shapes if dynamic else None, optimize=not train, external_data=False,
                          verbose=False)
    else:
        order = list(inspect.signature(model.forward).parameters)
        names.sort(key=order.index)
        axes = {key: {axis: SYMBOLS[axis] for axis in dynamic} for key in names}
        mode = torch.onnx.TrainingMode.TRAINING if train else torch.onnx.TrainingMode.EVAL
        torch.onnx.export(model, tuple(arguments[key] for key in names), path, dynamo=False, input_names=names,
                          output_names=["logits"], dynamic_axes={**axes, "logits": {0: "batch"}} if dynamic else None, training=mode,
                          do_constant_folding=not train)
    exported = onnx.load(path)
    for node in exported.graph.node:
        kept = [entry for entry in node.metadata_props if entry.key in KEPT_METADATA]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
        node.doc_string = ""
    del exported.graph.value_info[:]
    onnx.save(exported, path)


def reference(name, folder, suffix="", fresh=False):
    model = models.build(name, fresh)
    arguments = models.inputs(name)
    scores = models.logits(model, arguments)
    path = folder / f"{name}{suffix}.safetensors"
    save_file({key: value.clone().contiguous() for key, value in model.state_dict().items()}, path)
    path.chmod(0o644)
    arrays = {**arguments, "labels": models.labels(name, scores), "logits": scores}
    numpy.savez(folder / f"{name}{suffix}.npz", **{key: value.numpy() for key, value in arrays.items()})


def main():
    warnings.filterwarnings("ignore")
    folder = pathlib.Path(sys.argv[1])
    for name in models.ARCHITECTURES:
        reference(name, folder)
    for suffix, (names, options) in VARIANTS.items():
        for name in names:
            if options.get("fresh"):
                reference(name, folder, suffix, fresh=True)
            for exporter in ("torchscript", "dynamo"):
                export(name, exporter, str(folder / f"{name}-{exporter}{suffix}.onnx"), **options)


if __name__ == "__main__":
    main()
