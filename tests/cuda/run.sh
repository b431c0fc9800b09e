#!/usr/bin/env bash
# What a GPU says: kernels, ONNX's suites, whole plans, ranks that share it, compute-sanitizer, benches; the last lines are a
# table. Takes what bundle.sh made, and needs of the machine bash, tar, xz, a driver and NVIDIA's libraries: the CUDA toolkit's,
# cuDNN and NCCL, on LD_LIBRARY_PATH or as pip installs them. compute-sanitizer, nsys and PyTorch are used where they are.
#
#   bash tests/cuda/run.sh BUNDLE.tar.xz            at most 8 minutes
#   bash tests/cuda/run.sh BUNDLE.tar.xz --small    little of each: the dry run over the emulation
#
# Exit 1 if a check fails. Figures are printed, not judged.
set -uo pipefail
[ $# -ge 1 ] || { sed -n 2,10p "$0" >&2; exit 2; }
small=0
[ "${2:-}" = --small ] && small=1
limit=480
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bundle"
tar -C "$work/bundle" -xf "$1" || exit 1
bin=$work/bundle/bin
toolkit=${CUDA_HOME:-/usr/local/cuda}
export PIPEC_BIN=$bin
export PATH=$toolkit/bin:$toolkit/compute-sanitizer:$PATH
# Python, and PyTorch in it, with the libraries it has without the bundle's.
printf '#!/bin/sh\nLD_LIBRARY_PATH=%q exec python3 "$@"\n' "${LD_LIBRARY_PATH:-}" >"$work/python"
chmod +x "$work/python"
pip=$("$work/python" -c 'import glob, nvidia; print(":".join(f for p in nvidia.__path__ for f in glob.glob(p + "/*/lib")))' 2>/dev/null)
export LD_LIBRARY_PATH=$work/bundle/lib:$toolkit/lib64:$toolkit/lib:${LD_LIBRARY_PATH:-}:$pip
start=$SECONDS
rows=()
failed=0

row() { rows+=("$(printf '%-34s %-8s %5ss  %s' "$1" "$2" "$3" "$4")"); echo "${rows[-1]}"; }

# step NAME SECONDS COMMAND...: a row; its figure is the last line of what the command prints.
step() {
  local name=$1 seconds=$2 left=$((limit - SECONDS + start)) began=$SECONDS
  shift 2
  if [ "$left" -lt 10 ]; then row "$name" skipped 0 "no time is left of $limit s"; return 1; fi
  [ "$seconds" -lt "$left" ] || seconds=$left
  timeout "$seconds" "$@" >"$work/out" 2>&1
  local code=$?
  local last
  last=$(grep -v '^$' "$work/out" | tail -n 1 | cut -c1-120)
  grep -q '^throughput' "$work/out" && last=$(grep '^throughput' "$work/out")
  grep -q '^\[  PASSED  \] 0 tests' "$work/out" && code=1 last="no test has such a name"
  if [ $code = 0 ]; then row "$name" passed $((SECONDS - began)) "$last"; return 0; fi
  [ $code = 124 ] && last="not done after $seconds s"
  row "$name" FAILED $((SECONDS - began)) "$last"
  tail -n 30 "$work/out" | sed 's/^/    /'
  failed=1
  return 1
}

# The losses of a plan are those of another within the rounding of sums: same_losses A B.
same_losses() {
  paste -d ' ' "$1" "$2" | sed 's/[^0-9.e+ -]//g' | awk '
    { d = $1 - $2; if (d < 0) d = -d; if (d > worst) worst = d; ++n }
    END { if (n == 0 || worst > 1e-4) { print "losses differ by " worst " in " n " steps"; exit 1 } print "losses differ by " worst + 0 " in " n " steps" }'
}
losses() { sed -n 's/.*"loss": *\([^,}]*\).*/\1/p' "$1" >"$2"; }

missing=$(ldd "$bin"/* | awk '/not found/ {print $1}' | sort -u | tr '\n' ' ')
if [ -n "$missing" ]; then
  row libraries FAILED 0 "not on LD_LIBRARY_PATH nor where pip installs: $missing"
  exit 1
fi

if [ -f "$work/bundle/emulated" ]; then
  row gpu passed 0 "the emulation on a CPU: figures mean nothing"
else
  # Of cuDNN older than 9.15.1 attention's gradient is not taken.
  row libraries passed 0 "$(ldd "$bin/piperun" | awk '/libcublasLt|libcudnn|libnccl/ {print $3}' | xargs -r realpath | tr '\n' ' ')"
  command -v python3 >/dev/null && row cudnn passed 0 "$(python3 -c 'import ctypes; print(ctypes.CDLL("libcudnn.so.9").cudnnGetVersion())' 2>&1 | tail -n 1)"
  step gpu 30 nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || exit 1
fi

kernels='All/CudaKernel.*:CudaProducts.*:CudaAttention.Of*:CudaAttentionTiles.*-*.AreFewLaunches'  # those are counted by the emulation
[ $small = 0 ] || kernels='All/CudaKernel.*/Add:All/CudaKernel.*/Softmax'
step kernels 150 "$bin/cuda_test" --gtest_brief=1 --gtest_filter="$kernels"
[ $small = 1 ] || step "device, whole plans" 60 "$bin/cuda_test" --gtest_brief=1 --gtest_filter='All/CudaNets.*:CudaRuns.*:CudaDevice.*-*.SaysThatThereIsNoGpu:*.AnErrorAtAnyCall*:*.InferenceGives*:*.AMessageOf*'  # they need no GPU, errors, two GPUs

suites='node simple pytorch-converted pytorch-operator'
[ $small = 0 ] || suites=pytorch-operator
for suite in $suites; do
  step "conformance, $suite" 90 "$bin/onnx-conformance" --device=cuda --suite="$work/bundle/suites/$suite" \
    --gaps="$work/bundle/suite_gaps.txt,$work/bundle/cuda_gaps.txt"
done

# Four ranks on one GPU against one: steps as graphs, and piece by piece.
model='mlp --layers=8 --hidden=64 --inputs=32 --classes=10 --batch=8' steps=20
[ $small = 0 ] || model='mlp --layers=8 --hidden=8 --inputs=6 --classes=4 --batch=2' steps=3
"$bin/make-model" $model -o "$work/m.onnx" >/dev/null || exit 1
for ranks in 1 4; do
  "$bin/pipec" "$work/m.onnx" --stages=$ranks --microbatches=8 -o "$work/$ranks.plan" >/dev/null || exit 1
done
step "one rank" 60 "$bin/piperun" "$work/1.plan" --device=cuda --data=synthetic --steps=$steps --metrics="$work/1.jsonl" &&
  losses "$work/1.jsonl" "$work/1.losses"
for graph in "" --no-graph; do
  step "four ranks on one GPU $graph" 60 \
    "$bin/piperun" "$work/4.plan" --device=cuda --data=synthetic --steps=$steps --metrics="$work/4.jsonl" $graph || continue
  losses "$work/4.jsonl" "$work/4.losses"
  step "  as one rank" 10 bash -c "$(declare -f same_losses); same_losses $work/1.losses $work/4.losses"
done

if command -v compute-sanitizer >/dev/null; then
  # Libraries ask the driver for functions that it may not have; errors of the programs' own calls are the tests' business.
  for tool in "memcheck --report-api-errors no" racecheck synccheck; do
    step "compute-sanitizer ${tool%% *}" 60 compute-sanitizer --error-exitcode 1 --tool $tool \
      "$bin/cuda_test" --gtest_brief=1 --gtest_filter='All/CudaKernel.*/Add:All/CudaKernel.*/Softmax:All/CudaKernel.*/Adam'
  done
else
  row compute-sanitizer skipped 0 "it is not on PATH"
fi

torch=
"$work/python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null && torch=$work/python:$work/bundle/pytorch_gpt.py
nsys=$(command -v nsys)
if [ $small = 1 ] || [ -f "$work/bundle/emulated" ]; then
  bench=("--model=mlp --layers=8 --hidden=8 --inputs=6 --classes=4 --batch=2" --tokens=1 --batch=8 --microbatches=4 --precision=fp32 --ranks=2 --steps=2 --pairs=1)
else
  bench=("--torch=$torch" --pairs=5)
fi
step benches 300 "$bin/bench-cuda" "${bench[@]}" --nsys="$nsys"
grep -E '^[a-z_0-9]+ [-0-9.e+]+ [^ ]+$' "$work/out" | sed 's/^/    /'

echo
echo "$(printf '%-34s %-8s %6s  %s' what result time last)"
printf '%s\n' "${rows[@]}"
echo "$((SECONDS - start)) s, $([ $failed = 0 ] && echo all passed || echo FAILED)"
exit $failed
