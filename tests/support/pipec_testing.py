"""What the end-to-end tests share: running the tools, models in ONNX text, npz and safetensors. Standard library only."""

import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PIPEC_BIN", ROOT / "build/release/bin"))
# What tools/setup.sh fetched.
CACHE = pathlib.Path(os.environ.get("PIPEC_CACHE") or
                     pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "pipec")
TIMEOUT = 60  # seconds: no run may hang; sanitizer builds are slower
if os.environ.get("PIPEC_SLOW"):
    TIMEOUT *= 10

# bfloat16 values are given as their bits.
_NPY = {"float32": ("<f4", "f"), "float64": ("<f8", "d"), "float16": ("<f2", "e"), "bfloat16": ("<V2", "H"),
        "int64": ("<i8", "q"), "int32": ("<i4", "i"), "bool": ("|b1", "?")}


def elements(shape):
    n = 1
    for dim in shape:
        n *= dim
    return n


def npy(dtype, shape, values):
    """Bytes of a .npy file, version 1.0."""
    descr, code = _NPY[dtype]
    assert len(values) == elements(shape), (len(values), shape)
    dims = "(" + "".join(f"{d}," for d in shape) + ")"
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {dims}, }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}{code}", *values)


def write_npz(path, arrays):
    """arrays: name -> (dtype, shape, flat values)."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, (dtype, shape, values) in arrays.items():
            archive.writestr(f"{name}.npy", npy(dtype, shape, values))


def read_npz(path):
    """name -> (descr, shape, bytes)."""
    result = {}
    with zipfile.ZipFile(path) as archive:
        for entry in archive.namelist():
            blob = archive.read(entry)
            (length,) = struct.unpack_from("<H", blob, 8)
            header = eval(blob[10 : 10 + length].decode(), {"__builtins__": {}})  # a literal dict
            result[entry.removesuffix(".npy")] = (header["descr"], header["shape"], blob[10 + length :])
    return result


def read_safetensors(path):
    """name -> (dtype, shape, bytes)."""
    blob = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", blob)
    header = json.loads(blob[8 : 8 + length])
    header.pop("__metadata__", None)
    data = blob[8 + length :]
    return {name: (t["dtype"], t["shape"], data[slice(*t["data_offsets"])]) for name, t in header.items()}


def floats(data, dtype="F32"):
    code, size = {"F32": ("f", 4), "F64": ("d", 8)}[dtype]
    return struct.unpack(f"<{len(data) // size}{code}", data)


def relative_difference(a, b):
    """Norm of the difference over the norm of b."""
    difference = sum((x - y) ** 2 for x, y in zip(a, b)) ** 0.5
    norm = sum(y * y for y in b) ** 0.5
    return difference / norm if norm else difference


class Weights:
    """Seeded initial values, as text for ONNX text syntax."""

    def __init__(self, seed=1):
        self.random = random.Random(seed)

    def tensor(self, name, *shape, scale=None):
        scale = (1 / shape[0]) ** 0.5 if scale is None else scale
        values = ", ".join(f"{self.random.uniform(-scale, scale):.6f}" for _ in range(elements(shape)))
        return f"float[{','.join(map(str, shape))}] {name} = {{{values}}}"


def model_text(inputs, outputs, initializers, nodes, opset=21):
    """A model in ONNX text syntax; every argument but opset is a list of strings."""
    return (
        f'<ir_version: 10, opset_import: ["" : {opset}]>\n'
        f"model ({', '.join(inputs)}) => ({', '.join(outputs)})\n"
        f"<{', '.join(initializers)}>\n" + "{\n" + "".join(f"  {node}\n" for node in nodes) + "}\n"
    )


class Case(unittest.TestCase):
    """A test with a folder of its own and the tools at hand."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pipec-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.count = 0

    def run_tool(self, tool, *args, expect=0, timeout=TIMEOUT, cwd=None, **kwargs):
        command = [str(BIN / tool), *map(str, args)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL,
                              cwd=cwd or self.folder, **kwargs)
        if expect is not None:
            self.assertEqual(done.returncode, expect, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
        return done

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def compile(self, model, *flags, expect=0):
        """The plan's folder, or what pipec printed if it is expected to refuse."""
        self.count += 1
        plan = self.folder / f"plan{self.count}"
        done = self.run_tool("pipec", model, "-o", plan, *flags, expect=expect)
        if expect:
            self.assertFalse(plan.exists(), "a refused model left a plan")
            return done.stderr
        return plan

    def train(self, plan, data, *flags, steps=None):
        """(losses, exported tensors, raw metrics, raw export)."""
        self.count += 1
        metrics, export = self.folder / f"metrics{self.count}.jsonl", self.folder / f"export{self.count}"
        limit = [f"--steps={steps}"] if steps else []
        self.run_tool("piperun", plan, f"--data={data}", f"--metrics={metrics}", f"--export={export}", "--threads=1",
                      "--timeout=30", *limit, *flags)
        raw = metrics.read_bytes()
        losses = [json.loads(line)["loss"] for line in raw.splitlines()]
        tensors = export / "model.safetensors"
        return Run(losses, read_safetensors(tensors), raw, tensors.read_bytes())

    def assert_same_run(self, run, reference, what):
        self.assertEqual(run.metrics, reference.metrics, f"{what}: metrics differ")
        self.assertEqual(run.export, reference.export, f"{what}: exported parameters differ")


class Run:
    def __init__(self, losses, tensors, metrics, export):
        self.losses, self.tensors, self.metrics, self.export = losses, tensors, metrics, export


def with_a_message(profile):
    """A profile (piperun --profile) has the messages that were waited for, of which a busy machine may leave none: then it is
    given one."""
    document = json.loads(profile.read_text())
    document["messages"] = document["messages"] or [{"bytes": 1000, "seconds": 1e-5, "runs": 1}]
    profile.write_text(json.dumps(document))


def listed_schedules(late=False):
    """Rows of --list-schedules that train with the numbers of one rank: by name, the synchronous ones. `late`: instead
    those whose updates are late, which train with the numbers of the same delay on one rank, or of their own (B32)."""
    done = subprocess.run([str(BIN / "pipec"), "--list-schedules", "--json"], capture_output=True, text=True, timeout=TIMEOUT,
                          check=True)
    return {row["name"]: row for row in json.loads(done.stdout) 
            if row["update_rule"] != "none" and ("late" in row["update_rule"]) == late}


def takes(row, ranks, virtual_stages, microbatches):
    """Whether a schedule can take such a shape, by what its row says it needs."""
    microbatch_rules = {"any": True, "1": microbatches == 1, ">= P": microbatches >= ranks, ">= 2P": microbatches >= 2 * ranks,
                        "a multiple of max(1, M/P) if V > 1":
                            virtual_stages == 1 or microbatches % max(1, microbatches // ranks) == 0}
    return microbatch_rules[row["needed_microbatches"]] and row["needed_virtual_stages"] in ("any", str(virtual_stages))


def schedules(ranks=1, microbatches=None):
    """Names of all schedules that can take so many microbatches on so many ranks, with their default of stages a rank."""
    return [name for name, row in listed_schedules().items()
            if microbatches is None or takes(row, ranks, row["default_virtual_stages"], microbatches)]


def pipelines(stages, microbatches):
    """(schedule, flags) of every schedule that can have so many stages: one on each rank, or several."""
    for name, row in listed_schedules().items():
        needed = row["needed_virtual_stages"]
        held = int(needed) if needed != "any" else 2 if stages % 2 == 0 else stages
        if stages % held == 0 and takes(row, stages // held, held, microbatches):
            yield name, [f"--schedule={name}", f"--stages={stages // held}", f"--virtual-stages={held}"]


def most_needed(report):
    """Of pipec's report: the bytes of arena and workspace that the rank has to have which needs most."""
    return max(stage["peak_bytes"] + stage["workspace_bytes"] for stage in report["stages"])


def main():
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
