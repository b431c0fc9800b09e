#!/usr/bin/env bash
# From nothing to a trained model: installs what is missing, builds, compiles a GPT into four pipeline stages and trains it
# on a novel.
#
#   bash samples/demo.sh
set -euo pipefail
cd "$(dirname "$0")/.."

bash tools/setup.sh
cmake --preset release -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache >/dev/null
cmake --build --preset release --target pipec piperun make-model make-data
bash samples/gpt/run.sh build/demo

# The whole story once more: what was planned, and what happened.
echo
sed -n '/^stage  rank/,/^peak memory/p' build/demo/pipec.txt
echo
cat build/demo/piperun.txt
echo
echo "planned, measured and compared: build/demo/report.html; every slice of the run: build/demo/trace.json (open in ui.perfetto.dev)"
