"""What bench-infer compares with: onnxruntime on one thread. Needs onnxruntime and numpy.

    python3 onnxruntime_infer.py MODEL RUNS [--profile]

Prints a JSON object: `seconds` of a run, and with --profile `ops`, the seconds of a run by op. Dimensions without a number are 1.
"""

import json
import os
import sys
import tempfile
import time

import numpy
import onnxruntime

model, runs, profile = sys.argv[1], int(sys.argv[2]), "--profile" in sys.argv[3:]
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
options.log_severity_level = 3
folder = tempfile.TemporaryDirectory()
if profile:
    options.enable_profiling = True
    options.profile_file_prefix = os.path.join(folder.name, "profile")
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

random = numpy.random.default_rng(0)
feeds = {}
for value in session.get_inputs():
    shape = [d if isinstance(d, int) else 1 for d in value.shape]
    kinds = {"tensor(float)": numpy.float32, "tensor(int64)": numpy.int64, "tensor(int32)": numpy.int32, "tensor(bool)": numpy.bool_}
    kind = kinds[value.type]
    feeds[value.name] = (random.standard_normal(shape) if kind is numpy.float32 else random.integers(0, 2, shape)).astype(kind)

start = time.perf_counter()
for _ in range(runs):
    session.run(None, feeds)
result = {"seconds": (time.perf_counter() - start) / runs}
if profile:
    ops = {}
    with open(session.end_profiling()) as file:
        for event in json.load(file):
            if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
                op = event["args"]["op_name"]
                ops[op] = ops.get(op, 0) + event["dur"] * 1e-6 / runs
    result["ops"] = ops
print(json.dumps(result))
