"""Holds the sources to the house's rules: who may include whom, which libraries stay behind which door, how long a file is."""

import collections
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
MOST_LINES = 400
MOST_COLUMNS = 120

# Left may include right, itself, and runtime/base; nothing else.
COMPILER = ["compiler/ir", "compiler/onnx", "compiler/ops", "compiler/cost", "compiler/partition", "compiler/schedule",
            "compiler/memory"]
RUNTIME = ["runtime/plan", "runtime/device", "runtime/device/cpu", "runtime/device/cuda", "runtime/device/null",
           "runtime/device/replay", "runtime/transport",
           "runtime/transport/local", "runtime/transport/nccl", "runtime/executor", "runtime/data", "runtime/checkpoint", "runtime/driver"]
MAY_INCLUDE = {
    "tools": ["passes", "compiler/report", "compiler/emit", *COMPILER, *RUNTIME],
    "passes": [*COMPILER, "runtime/device", "runtime/device/cpu"],
    "compiler/report": ["compiler/ir", "compiler/ops", "compiler/cost", "compiler/schedule", "compiler/memory"],
    "compiler/emit": ["compiler/ir", "compiler/ops", "compiler/cost", "compiler/schedule", "compiler/memory", "compiler/onnx",
                      "runtime/plan", "runtime/checkpoint"],
    "compiler/onnx": ["compiler/ir", "compiler/ops"],
    "compiler/ops": ["compiler/ir"],
    "compiler/cost": ["compiler/ir", "compiler/ops"],
    "compiler/ir": ["compiler/partition", "compiler/schedule", "compiler/memory"],
    "compiler/partition": [],
    "compiler/schedule": [],
    "compiler/memory": [],
    "runtime/base": [],
    "runtime/plan": [],
    "runtime/device": [],
    "runtime/device/cpu": ["runtime/device"],
    "runtime/device/cuda": ["runtime/device"],
    "runtime/device/null": ["runtime/device"],
    "runtime/device/replay": ["runtime/device"],
    "runtime/transport": ["runtime/device"],
    "runtime/transport/local": ["runtime/transport", "runtime/device"],
    "runtime/transport/nccl": ["runtime/transport", "runtime/transport/local", "runtime/device", "runtime/device/cuda"],
    "runtime/checkpoint": [],
    "runtime/data": ["runtime/checkpoint"],
    "runtime/executor": ["runtime/plan", "runtime/device", "runtime/transport"],
    "runtime/driver": ["runtime/plan", "runtime/device", "runtime/transport", "runtime/executor", "runtime/data",
                       "runtime/checkpoint"],
    "samples": ["tools"],
}
# Headers of other projects that only these rooms may include.
DOORS = {
    r"onnx/": ["compiler/onnx", "samples"],
    r"llvm/": ["tools"],
    r"(dnnl|oneapi/)": ["runtime/device/cpu"],
    r"(cuda|cublas|cudnn|nvrtc)": ["runtime/device/cuda", "runtime/transport/nccl"],
    r"nccl": ["runtime/transport/nccl"],
    r"mpi\.h": ["runtime/transport/mpi"],
}
# Passes reach the CPU device only to fold constants.
FOLDING = {"passes/evaluate.cc", "passes/fold_constants.cc"}

ROOMS = sorted(MAY_INCLUDE, key=len, reverse=True)


def room_of(path):
    return next((room for room in ROOMS if path.startswith(room + "/")), None)


def sources():
    for top in ("compiler", "passes", "runtime", "tools", "samples", "tests"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in (".cc", ".h", ".cu", ".cuh", ".py", ".sh", ".js", ".css", ".html"):
                yield path.relative_to(ROOT).as_posix()


def includes(path):
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if match:
            yield number, match.group(1)


class House(unittest.TestCase):
    def test_who_may_include_whom(self):
        faults = []
        for path in sources():
            room = room_of(path)
            if path.startswith("tests/") or not path.endswith((".cc", ".h", ".cu", ".cuh")):
                continue
            self.assertIsNotNone(room, f"{path} lies in no room of this test's table")
            for number, target in includes(path):
                other = room_of(target)
                if other in (None, room, "runtime/base") or target == "runtime/device/ops.def":
                    continue
                allowed = other in MAY_INCLUDE[room]
                if room == "passes" and other == "runtime/device/cpu":
                    allowed = path in FOLDING
                if not allowed:
                    faults.append(f"{path}:{number}: {room} may not include {target}")
        self.assertEqual(faults, [])

    def test_libraries_stay_behind_their_doors(self):
        faults = []
        for path in sources():
            if path.startswith("tests/"):
                continue
            for number, target in includes(path):
                for pattern, rooms in DOORS.items():
                    if re.match(pattern, target) and not any(path.startswith(room + "/") for room in rooms):
                        faults.append(f"{path}:{number}: {target} belongs in {' or '.join(rooms)}")
        self.assertEqual(faults, [])

    def test_files_are_short(self):
        long = [(path, lines) for path in sources() if (lines := len((ROOT / path).read_text().splitlines())) > MOST_LINES]
        self.assertEqual(long, [])

    def test_lines_are_short(self):
        long = [f"{path}:{number}" for path in sources() if path.endswith((".cc", ".h", ".cu", ".cuh"))
                for number, line in enumerate((ROOT / path).read_text().splitlines(), 1) if len(line) > MOST_COLUMNS]
        self.assertEqual(long, [])

    def test_no_two_rooms_include_each_other(self):
        edges = collections.defaultdict(set)
        for path in sources():
            room = room_of(path)
            if room:
                edges[room] |= {room_of(target) for _, target in includes(path)} - {None, room}
        cycles = [(a, b) for a in list(edges) for b in edges[a] if a < b and a in edges[b]]
        self.assertEqual(cycles, [])

    def test_every_room_says_what_it_is_for(self):
        rooms = [room for room in MAY_INCLUDE if room.count("/") == 1 or room == "passes"]
        self.assertEqual([room for room in rooms if not (ROOT / room / "README.md").exists()], [])


if __name__ == "__main__":
    unittest.main()
