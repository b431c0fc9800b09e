#!/usr/bin/env bash
# What a machine with a GPU needs to run tests/cuda/run.sh, and this machine can make: programs and the libraries they link, but
# neither glibc nor NVIDIA's.
#
#   bash tests/cuda/bundle.sh BUILD OUT.tar.xz
#
# BUILD is a build of preset cuda (targets piperun pipec make-model cuda_test onnx-conformance bench-cuda), or any other, whose
# programs run over the emulation (targets piperun_emulated and onnx-conformance_emulated instead). At most 60 MB.
set -euo pipefail
[ $# = 2 ] || { sed -n 2,9p "$0" >&2; exit 2; }
build=$1 out=$2
here=$(cd "$(dirname "$0")" && pwd)
suites=${PIPEC_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pipec}/onnx-1.22.0/share/onnx/backend-test-data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/lib"
for program in pipec make-model cuda_test bench-cuda; do
  [ -f "$build/bin/$program" ] || { echo "bundle: there is no $build/bin/$program: build it first" >&2; exit 1; }
done
cp "$build"/bin/{pipec,make-model,cuda_test,bench-cuda} "$work/bin"
if [ -f "$build/bin/emulated/piperun" ]; then
  cp "$build"/bin/emulated/{piperun,onnx-conformance} "$work/bin"
  touch "$work/emulated"
else
  cp "$build"/bin/{piperun,onnx-conformance} "$work/bin"
  strip "$work"/bin/*  # the emulation reads symbols
fi
cp "$here/../bench/pytorch_gpt.py" "$here"/../conformance/{suite,cuda}_gaps.txt "$work"
ldd "$work"/bin/* | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
  { grep -Ev '/(libc|libm|libdl|librt|libpthread|libresolv|ld-linux-x86-64|libcublas|libcublasLt|libcudnn[a-z_]*|libcudart|libnccl)\.so' || true; } |
  xargs -r cp -L -t "$work/lib"
tar -cf "$out" -I "xz -1" --transform="s,^$(basename "$suites"),suites," -C "$work" . \
  -C "$(dirname "$suites")" "$(basename "$suites")"/{node,simple,pytorch-converted,pytorch-operator}
bytes=$(stat -c %s "$out")
echo "$out: $((bytes / 1000000)) MB"
[ "$bytes" -le 60000000 ] || { echo "bundle: more than 60 MB" >&2; exit 1; }
