#!/usr/bin/env bash
# Compiles and trains the digits sample: bash samples/digits/run.sh [OUTPUT FOLDER [SEED [mlp|cnn]]]. Needs a built preset
# release, or PIPEC_BIN: where the programs are.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
out=${1:-$root/build/samples/digits}
seed=${2:-0}
kind=${3:-mlp}
mkdir -p "$out"
out=$(cd "$out" && pwd)
PATH=${PIPEC_BIN:-$root/build/release/bin}:$PATH

case $kind in
  mlp)
    model=(mlp --layers=4 --inputs=64 --hidden=256 --classes=10)
    data=()
    epochs=60
    ;;
  cnn)
    model=(cnn --layers=4 --image=1x8x8 --hidden=32 --classes=10 --dropout=0.5)
    data=(--images)
    epochs=40
    ;;
  *)
    echo "run.sh: unknown model '$kind'; there are mlp, cnn" >&2
    exit 2
    ;;
esac

make-model "${model[@]}" --batch=8 --seed="$seed" -o "$out/digits.onnx"
make-data digits "$root/samples/digits/digits.csv.gz" "${data[@]}" -o "$out/train.npz" --eval="$out/eval.npz"

pipec "$out/digits.onnx" --stages=4 --schedule=1f1b --microbatches=4 -o "$out/digits.plan"

piperun "$out/digits.plan" --data="$out/train.npz" --eval-data="$out/eval.npz" --shuffle --seed="$seed" \
  --epochs="$epochs" --lr=3e-3 --weight-decay=0.1 --lr-schedule=cosine --threads=1 --metrics="$out/metrics.jsonl"
