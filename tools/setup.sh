#!/usr/bin/env bash
# Installs what pipec builds and tests with, on Debian 12: packages, and onnx's C++ library.
#
#   bash tools/setup.sh            install what is missing; a second call changes nothing and needs no network
#
# Debian's own onnx is too old (no inliner), so the library is built once from its source package on
# PyPI into a per-user cache, ${PIPEC_CACHE:-${XDG_CACHE_HOME:-~/.cache}/pipec}, keyed by version.
set -euo pipefail

onnx_version=1.22.0
onnx_sha256=ef40c0aaf0b643857ea9306fc7eddce17eaf9fb0407e4801f1fc5758443a38e0
cache=${PIPEC_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pipec}
prefix=$cache/onnx-$onnx_version

packages=(
  g++ cmake ninja-build ccache git pkg-config python3 python3-venv ca-certificates
  libabsl-dev libprotobuf-dev protobuf-compiler nlohmann-json3-dev libzip-dev libxxhash-dev libdnnl-dev
  llvm-14-dev llvm-14-tools zlib1g-dev libtinfo-dev
  libgtest-dev libgmock-dev libbenchmark-dev strace clang-14 libclang-rt-14-dev libomp-14-dev
)

say() { echo "setup: $*"; }

install_packages() {
  local missing=()
  for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  if [ ${#missing[@]} = 0 ]; then say "all ${#packages[@]} Debian packages are there"; return; fi
  local root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { say "not root and no sudo; install by hand: ${missing[*]}" >&2; exit 1; }
    root=(sudo)
  fi
  say "installing Debian packages: ${missing[*]}"
  "${root[@]}" apt-get update -qq
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

build_onnx() {
  if [ -f "$prefix/.complete" ]; then say "onnx $onnx_version is in $prefix"; return; fi
  say "building onnx $onnx_version into $prefix (a few minutes, once)"
  mkdir -p "$cache"
  # Global, for the trap that runs after the function has returned.
  work=$(mktemp -d "$cache/build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  # onnx's CMake file asks for a newer CMake than Debian 12 has; PyPI carries one.
  python3 -m venv "$work/python"
  "$work/python/bin/pip" install --quiet --disable-pip-version-check 'cmake==3.31.*'
  "$work/python/bin/pip" download --quiet --disable-pip-version-check --no-deps --no-binary onnx -d "$work" "onnx==$onnx_version"
  echo "$onnx_sha256  $work/onnx-$onnx_version.tar.gz" | sha256sum --check --quiet
  tar -xzf "$work/onnx-$onnx_version.tar.gz" -C "$work"
  local log=$cache/onnx-$onnx_version.log
  if ! {
    "$work/python/bin/cmake" -S "$work/onnx-$onnx_version" -B "$work/build" -G Ninja \
      -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_INSTALL_PREFIX="$work/prefix" \
      -DONNX_BUILD_PYTHON=OFF -DONNX_ML=ON -DONNX_USE_PROTOBUF_SHARED_LIBS=ON &&
    "$work/python/bin/cmake" --build "$work/build" &&
    "$work/python/bin/cmake" --install "$work/build" &&
    # The suite that judges operators: data, used by tests only.
    mkdir -p "$work/prefix/share/onnx" && cp -r "$work/onnx-$onnx_version/onnx/backend/test/data" "$work/prefix/share/onnx/backend-test-data"
  } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    say "building onnx failed; the whole log is $log" >&2
    exit 1
  fi
  touch "$work/prefix/.complete"
  rm -rf "$prefix"
  mv "$work/prefix" "$prefix"
}

start=$SECONDS
install_packages
build_onnx
say "done in $((SECONDS - start)) s"
