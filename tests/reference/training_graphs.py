"""The training graphs that pipec emits, run by onnxruntime: loss and gradients against those of pipec's own run.

    training_graphs.py [KIND...]     all kinds of make-model that it knows, or these

Needs onnx, onnxruntime and numpy; PIPEC_BIN as for all tests. Prints a line for each graph: the relative difference of the
loss, the largest of a gradient (norm of the difference over norm), how many gradients. A graph is checked by onnx with full
shape inference, run whole with one microbatch, whole microbatch by microbatch, and stage file by stage file.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from pipec_testing import BIN, floats, read_safetensors

BATCH, MICROBATCHES, RATE = 16, 2, 1024.0
IMAGE = {"x": ("float32", (3, 32, 32), 0)}
TOKENS = {"input_ids": ("int64", (16,), 64), "labels": ("int64", (16,), 64)}
# make-model's flags, and the inputs: dtype, shape of a sample, number of classes.
KINDS = {
    "mlp": ("--layers=4 --inputs=16 --hidden=32 --classes=10", {"x": ("float32", (16,), 0), "labels": ("int64", (), 10)}),
    "gpt": ("--layers=2 --hidden=32 --heads=4 --sequence=16 --vocabulary=64 --dropout=0.1", TOKENS),
    "bert": ("--layers=2 --hidden=32 --heads=4 --sequence=16 --vocabulary=64",
             {**TOKENS, "token_type_ids": ("int64", (16,), 2)}),
    "llama": ("--layers=2 --hidden=32 --heads=4 --sequence=16 --vocabulary=64", TOKENS),
    "lstm": ("--layers=2 --hidden=32 --sequence=16 --vocabulary=64", TOKENS),
    "cnn": ("--image=3x32x32 --classes=10", {**IMAGE, "labels": ("int64", (), 10)}),
    "resnet": ("--image=3x64x64 --classes=10 --hidden=8", {"x": ("float32", (3, 64, 64), 0), "labels": ("int64", (), 10)}),
    "unet": ("--image=3x32x32 --classes=4 --hidden=8 --layers=2", {**IMAGE, "labels": ("int64", (32, 32), 4)}),
}


def tool(name, *arguments):
    done = subprocess.run([str(BIN / name), *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name} {' '.join(map(str, arguments))}\n{done.stderr}")


def session(path):
    onnx.checker.check_model(str(path), full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # defaults that can be overridden are meant
    return onnxruntime.InferenceSession(str(path), options)


def run(graph, known):
    """Outputs by name; what is known feeds the inputs of that name, the others keep their defaults."""
    feed = {i.name: known[i.name] for i in [*graph.get_inputs(), *graph.get_overridable_initializers()] if i.name in known}
    names = [o.name for o in graph.get_outputs()]
    return dict(zip(names, graph.run(names, feed)))


def zeros(inputs):
    types = {"tensor(float)": numpy.float32, "tensor(double)": numpy.float64, "tensor(int64)": numpy.int64}
    return {i.name: numpy.zeros(i.shape, types[i.type]) for i in inputs}


def by_stages(folder, stages, known):
    """The stage files as a pipeline: forward through all, then backwards with the gradients that came."""
    graphs = [session(folder / f"stage_{k}.onnx") for k in range(stages)]
    known, results = dict(known), {}
    for k in [*range(stages), *reversed(range(stages)), *range(stages)]:
        outputs = run(graphs[k], {**zeros(graphs[k].get_inputs()), **known})
        results.update({name: value for name, value in outputs.items() if name == "loss" or name.startswith("grad:")})
        # What a run leaves behind is for the next step, not for this one.
        known.update({name: value for name, value in outputs.items() if not name.endswith((".updated", ".sum"))})
    return results


def emitted_and_own(folder, kind, stages, microbatches):
    """(folder of the graphs, feeds, loss and gradients of pipec's own step)."""
    flags, inputs = KINDS[kind]
    model, data, plan, graphs = (folder / name for name in (f"{kind}.onnx", "data.npz", "plan", f"graphs{stages}{microbatches}"))
    tool("make-model", kind, *flags.split(), "-o", model)
    draw = numpy.random.default_rng(3)
    arrays = {name: draw.integers(0, most, (BATCH, *shape)) if dtype == "int64" else draw.standard_normal((BATCH, *shape), numpy.float32)
              for name, (dtype, shape, most) in inputs.items()}
    numpy.savez(data, **arrays)
    tool("pipec", model, "-o", plan, f"--stages={stages}", f"--microbatches={microbatches}", f"--batch={BATCH}",
         "--optimizer=sgd", f"--emit-onnx={graphs}")
    ends = []
    for steps in (0, 1):
        out = folder / f"end{steps}"
        tool("piperun", plan, f"--data={data}", f"--steps={steps}", f"--lr={RATE}", f"--metrics={folder / 'metrics.jsonl'}",
             f"--export={out}")
        ends.append({name: numpy.array(floats(t[2]), numpy.float64).reshape(t[1])
                     for name, t in read_safetensors(out / "model.safetensors").items() if t[0] == "F32"})
    own = {f"grad:{name}": (ends[0][name] - ends[1][name]) / RATE for name in ends[0]}
    own["loss"] = json.loads((folder / "metrics.jsonl").read_text().splitlines()[0])["loss"]
    return graphs, arrays, own


def compare(what, got, own):
    loss = abs(float(got["loss"]) / own["loss"] - 1)
    gradients = {name: value for name, value in got.items() if name.startswith("grad:")}
    norm = sum(float(numpy.sum(own[name] ** 2)) for name in gradients) ** 0.5 / len(gradients) ** 0.5
    worst = max((numpy.linalg.norm(value - own[name]) / max(numpy.linalg.norm(own[name]), 1e-3 * norm), name)
                for name, value in gradients.items())
    print(f"{what}: loss {loss:.1e}, gradients {worst[0]:.1e} ({worst[1]}), {len(gradients)} gradients", flush=True)
    assert loss < 1e-5 and worst[0] < 1e-4 and len(gradients) > 3


def main():
    for kind in sys.argv[1:] or KINDS:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            graphs, feed, own = emitted_and_own(folder, kind, 2, 1)
            compare(f"{kind}, whole", run(session(graphs / "model.onnx"), feed), own)
            compare(f"{kind}, stage by stage", by_stages(graphs, 2, feed), own)
            graphs, feed, own = emitted_and_own(folder, kind, 1, MICROBATCHES)
            graph, sums, got = session(graphs / "model.onnx"), {}, {}
            for m in range(MICROBATCHES):
                part = {name: array[m * BATCH // MICROBATCHES:(m + 1) * BATCH // MICROBATCHES] for name, array in feed.items()}
                got = run(graph, {**part, **sums, "first_sample": numpy.array(m * BATCH // MICROBATCHES)})
                sums = {name.removesuffix(".sum"): value for name, value in got.items() if name.endswith(".sum")}
                # Running statistics go on from microbatch to microbatch too.
                sums.update({i.name: got[f"{i.name}.updated"] for i in graph.get_overridable_initializers()
                             if "running" in i.name and f"{i.name}.updated" in got})
            compare(f"{kind}, {MICROBATCHES} microbatches", got, own)


if __name__ == "__main__":
    main()
