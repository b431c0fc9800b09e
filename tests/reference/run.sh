#!/usr/bin/env bash
# Makes PyTorch's numbers again and compares: them with the committed ones, and pipec with both.
#
#   bash tests/reference/run.sh            compare
#   bash tests/reference/run.sh --commit   replace the committed numbers by new ones
#
# PyTorch is large, so it is no part of set-up: PIPEC_TORCH_PYTHON names an interpreter that has torch, numpy, onnx,
# onnxruntime, onnxscript, safetensors and transformers; without it one is made in the cache folder.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=${PIPEC_TORCH_PYTHON:-}
if [ -z "$python" ]; then
  environment=${PIPEC_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pipec}/torch
  python=$environment/bin/python
  if [ ! -x "$python" ] || ! "$python" -c 'import torch, numpy, onnx, onnxruntime, onnxscript, safetensors, transformers' 2>/dev/null; then
    echo "reference: installing PyTorch into $environment" >&2
    python3 -m venv "$environment"
    "$python" -m pip install --quiet torch numpy onnx onnxruntime onnxscript safetensors transformers
  fi
fi
if [ "${1:-}" = --commit ]; then
  "$python" "$here/make_reference.py" "$here"
  "$python" "$here/make_bf16.py" "$here"
  "$python" "$here/make_losses.py" "$here"
  "$python" "$here/make_optimizers.py" "$here"
  "$python" "$here/pytorch_models/export.py" "$here/../data/pytorch"
  "$python" "$here/pytorch_models/train.py" "$here/../data/pytorch"
else
  fresh=$(mktemp -d)
  trap 'rm -rf "$fresh"' EXIT
  "$python" "$here/make_reference.py" "$fresh"
  python3 - "$here" "$fresh" "$here/../support" <<'P'
import json, pathlib, sys
committed, fresh, support = map(pathlib.Path, sys.argv[1:])
sys.path.insert(0, str(support))
from pipec_testing import floats, read_safetensors, relative_difference
old, new = (json.loads((folder / "numbers.json").read_text())["losses"] for folder in (committed, fresh))
assert old.keys() == new.keys() and old
for case in old:
    worst = max(abs(a / b - 1) for a, b in zip(old[case], new[case], strict=True))
    a, b = (read_safetensors(folder / f"{case}.safetensors") for folder in (committed, fresh))
    assert a.keys() == b.keys()
    # The gradient of the key's bias is nothing but rounding.
    parameters = max(relative_difference(floats(a[name][2]), floats(b[name][2])) for name in a if not name.endswith("self.key.bias"))
    print(f"{case}: committed and fresh PyTorch differ by {worst:.1e} (losses), {parameters:.1e} (parameters)")
    assert worst < 1e-5 and parameters < (1e-3 if case.endswith("adamw") else 1e-5)
P
fi
"$python" "$here/check_networks.py"
python3 "$here/reference_test.py"
python3 "$here/precision_test.py"
python3 "$here/pytorch_training_test.py"
"$python" "$here/pytorch_models/check.py"
python3 "$here/losses_test.py"
python3 "$here/optimizers_test.py"
"$python" "$here/training_graphs.py"
"$python" "$here/emitted_inference.py"
