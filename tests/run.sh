#!/usr/bin/env bash
# Builds and passes every test.
#
#   bash tests/run.sh             preset release
#   bash tests/run.sh asan        another preset: dev, asan, tsan
#
# The last line is 'N passed, N failed'.
set -uo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}

bash tools/setup.sh || exit 1
cmake --preset "$preset" -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache >/dev/null || exit 1
cmake --build --preset "$preset" || exit 1

case $preset in asan | tsan) export PIPEC_SLOW=1 ;; esac
log=$(mktemp)
trap 'rm -f "$log"' EXIT
ctest --preset "$preset" --parallel "$(nproc)" | tee "$log"
status=${PIPESTATUS[0]}
# "97% tests passed, 3 tests failed out of 100"
read -r failed total < <(sed -n 's/^[0-9]*% tests passed, \([0-9]*\) tests* failed out of \([0-9]*\)$/\1 \2/p' "$log" | tail -n 1)
if [ -z "${total:-}" ] || [ "$total" = 0 ]; then
  echo "no test ran" >&2
  exit 1
fi
echo "$((total - failed)) passed, $failed failed"
exit "$status"
