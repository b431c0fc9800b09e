#!/usr/bin/env bash
# Compiles and trains the GPT sample: bash samples/gpt/run.sh [OUTPUT FOLDER]. Needs a built preset
# release, or PIPEC_BIN: where the programs are.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
out=${1:-$root/build/samples/gpt}
mkdir -p "$out"
out=$(cd "$out" && pwd)
PATH=${PIPEC_BIN:-$root/build/release/bin}:$PATH

make-model gpt --layers=4 --hidden=128 --heads=4 --sequence=64 --vocabulary=75 --batch=4 -o "$out/gpt.onnx"
make-data text "$root/samples/gpt/pride_and_prejudice.txt" -o "$out/train.bin" --eval="$out/eval.bin" --vocabulary="$out/vocabulary.json"

pipec "$out/gpt.onnx" --stages=4 --schedule=1f1b --microbatches=8 -o "$out/gpt.plan" | tee "$out/pipec.txt"

piperun "$out/gpt.plan" --data="$out/train.bin" --tokens=u8 --eval-data="$out/eval.bin" --shuffle \
  --epochs=5 --lr=3e-3 --lr-schedule=one-cycle --clip-norm=1 --threads=1 \
  --metrics="$out/metrics.jsonl" --trace="$out/trace.json" --export="$out/trained" | tee "$out/piperun.txt"

# Plan and run on one page, and what two other schedules would do.
pipec "$out/gpt.onnx" --stages=4 --schedule=1f1b --microbatches=8 --dry-run --compare=gpipe,zb-h1 --measured="$out/trace.json" \
  --report="$out/report.html" >/dev/null
