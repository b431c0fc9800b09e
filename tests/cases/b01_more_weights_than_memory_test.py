"""B01: weights above 2 GB lie in one file beside the model; they are referenced, never read into memory or written into protobuf."""

import collections
import os
import pathlib
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import BIN, TIMEOUT, Case, Weights, main, read_npz, write_npz

LAYERS = 24
MEMORY = 300e6  # bytes, of pipec
# Runs its arguments and says how many kilobytes they had in memory at most.
PEAK = """import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(done.returncode)"""


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of a protobuf message: an int, or bytes for strings and messages."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            length = {1: 8, 5: 4}.get(key & 7)
            if length is None:
                length, at = varint(data, at)
            value = data[at : at + length]
            at += length
        yield key >> 3, value


def rank_plans(plan):
    """Per rank: nodes (op, name) and parameters name -> (file, offset, length), by the numbers of plan.proto."""
    ranks = []
    for path in sorted(plan.glob("rank-*.plan")):
        nodes, parameters = [], {}
        for number, value in fields(path.read_bytes()):
            if number == 15:
                for inner, instruction in fields(value):
                    if inner == 3:
                        node = dict(fields(instruction))
                        nodes.append((node[1].decode(), node[3].decode()))
            if number == 19:
                row = dict(fields(value))
                parameters[row[1].decode()] = (row[3].decode(), row.get(4, 0), row[5])
        ranks.append((nodes, parameters))
    return ranks


class B01(Case):
    def model(self, width, files=1, inside=False):
        """24 blocks of Gemm and Relu with their weights laid end to end in files that are holes but for a few rows; the
        biases may lie in the model itself. Where everything lies: name -> (file, offset, length)."""
        random = Weights(4).random
        places, initializers, nodes, x = {}, [], [], "x"
        ends = [0] * files
        for k in range(LAYERS):
            location = f"weights{k % files}.bin"
            with open(self.folder / location, "r+b" if k >= files else "w+b") as file:
                for name, shape, rows in ((f"w{k}", (width, width), min(width, 16)), (f"b{k}", (width,), 1)):
                    numbers = [random.uniform(-0.3, 0.3) for _ in range(rows * width)]
                    if inside and len(shape) == 1:
                        text = ", ".join(f"{n:.6f}" for n in numbers)
                        initializers.append(f"float[{width}] {name} = {{{text}}}")
                        continue
                    offset, length = ends[k % files], 4 * (width if len(shape) == 1 else width * width)
                    file.seek(offset)
                    file.write(struct.pack(f"<{len(numbers)}f", *numbers))
                    ends[k % files] += length
                    file.truncate(ends[k % files])
                    dims = ",".join(map(str, shape))
                    initializers.append(f'float[{dims}] {name} = ["location": "{location}", "offset": "{offset}", '
                                        f'"length": "{length}"]')
                    places[name] = (str(self.folder / location), offset, length)
            nodes += [f"a{k} = Gemm({x}, w{k}, b{k})", f"h{k} = Relu(a{k})"]
            x = f"h{k}"
        nodes[-1] = f"y = Relu(a{LAYERS - 1})"
        text = (f'<ir_version: 10, opset_import: ["" : 21]>\nbig (float[N,{width}] x) => (float[N,{width}] y)\n'
                f"<{', '.join(initializers)}>\n{{\n" + "\n".join(nodes) + "\n}\n")
        return self.write("big.onnxtxt", text), places

    def peak(self, *command):
        done = subprocess.run([sys.executable, "-c", PEAK, *map(str, command)], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(done.stdout) * 1024

    def check_plan(self, plan, places, ranks):
        """Every node and every weight is on one rank; each rank refers to its share of the bytes, where the model has them."""
        plans = rank_plans(plan)
        self.assertEqual(len(plans), ranks)
        nodes = collections.Counter(node for rank, _ in plans for node in rank)
        self.assertEqual(set(nodes.values()), {1}, "a node is on several ranks")
        total = sum(length for _, _, length in places.values())
        owners = collections.Counter(name for _, parameters in plans for name in parameters)
        self.assertEqual(owners, collections.Counter(places.keys()))
        for _, parameters in plans:
            share = 0
            for name, place in parameters.items():
                self.assertEqual(place, places[name])
                share += place[2]
            self.assertAlmostEqual(share / total, 1 / ranks, delta=0.05)
        for path in plan.iterdir():
            self.assertLess(path.stat().st_size, 1 << 20, path)
        return set(nodes)

    def test_compiles_in_little_memory(self):
        path, places = self.model(5120)
        self.assertGreater(sum(length for _, _, length in places.values()), 2 << 30)
        seen = {}
        for what, flags in (("infer", ["--mode=infer"]), ("train", ["--loss=mse", "--optimizer=adamw"])):
            for ranks in (1, 4):
                if what == "train" and ranks == 1:
                    continue
                plan = self.folder / f"{what}{ranks}"
                peak = self.peak(BIN / "pipec", path, "-o", plan, f"--stages={ranks}", "--memory=1TB", *flags)
                if not os.environ.get("PIPEC_SLOW"):  # a sanitizer's own memory
                    self.assertLess(peak, MEMORY, what)
                self.assertFalse((plan / "parameters").exists(), "above 1 GB weights stay where they are")
                if what == "infer":
                    seen[ranks] = self.check_plan(plan, places, ranks)
        self.assertEqual(seen[4], seen[1])
        self.assertEqual(sum(op in ("Gemm", "MatMul", "FusedMatMul") for op, _ in seen[4]), LAYERS)
        self.assertLess(self.peak(BIN / "piperun", self.folder / "infer4", "--verify"), MEMORY * (10 if os.environ.get("PIPEC_SLOW") else 1))

    def test_runs_are_those_of_one_rank(self):
        width, samples = 64, 8
        random = Weights(7).random
        data = self.folder / "data.npz"
        write_npz(data, {name: ("float32", (samples, width), [random.uniform(-1, 1) for _ in range(samples * width)])
                         for name in ("x", "labels")})
        for files, inside in ((1, False), (5, False), (LAYERS, False), (1, True)):
            path, places = self.model(width, files, inside)
            with self.subTest(files=files, inside=inside):
                outputs, runs = [], []
                for ranks in (1, 4):
                    for parameters in ("copy", "link"):
                        common = [f"--stages={ranks}", f"--parameters={parameters}", "--microbatches=2", "--batch=4"]
                        plan = self.compile(path, "--mode=infer", *common)
                        if parameters == "link" and not inside:
                            self.check_plan(plan, places, ranks)
                        out = self.folder / "out.npz"
                        self.run_tool("piperun", plan, f"--data={data}", f"--outputs={out}")
                        self.run_tool("piperun", plan, "--verify")
                        outputs.append(read_npz(out))
                        plan = self.compile(path, "--loss=mse", *common)
                        runs.append(self.train(plan, data, "--lr=0.01"))
                self.assertTrue(any(outputs[0]["y"][2]))
                for output in outputs[1:]:
                    self.assertEqual(output, outputs[0])
                self.assertNotEqual(runs[0].losses[0], runs[0].losses[-1])
                for run in runs[1:]:
                    self.assert_same_run(run, runs[0], "P=4 or linked")

    def test_a_linked_file_that_changed_is_refused(self):
        path, places = self.model(16)
        plan = self.compile(path, "--mode=infer", "--stages=2", "--parameters=link")
        weights, offset, _ = places["w20"]
        with open(weights, "r+b") as file:
            file.seek(offset)
            file.write(b"\x00\x00\x80\x3f")
        os.utime(weights, ns=(0, 0))
        for flags in (["--verify"], ["--data=synthetic", "--epochs=1"]):
            done = self.run_tool("piperun", plan, *flags, expect=1)
            self.assertIn("'w20'", done.stderr)
            self.assertIn("has changed since pipec made the plan", done.stderr)
        os.remove(weights)
        self.assertIn(weights, self.run_tool("piperun", plan, "--verify", expect=1).stderr)

    def test_nothing_to_link(self):
        text = "<ir_version: 10, opset_import: [\"\" : 21]>\nm (float[N,2] x) => (float[N,2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }\n"
        message = self.compile(self.write("small.onnxtxt", text), "--mode=infer", "--stages=1", "--parameters=link", expect=1)
        self.assertIn("--parameters=copy", message)


if __name__ == "__main__":
    main()
