#!/usr/bin/env bash
# Installs what pipec builds and tests with, on Debian 12: packages, onnx's C++ library, two models that others trained and,
# where nvcc is, NVIDIA's disassembler.
#
#   bash tools/setup.sh            install what is missing; a second call changes nothing and needs no network
#
# Debian's own onnx is too old (no inliner), so the library is built once from its source package on
# PyPI into a per-user cache, ${PIPEC_CACHE:-${XDG_CACHE_HOME:-~/.cache}/pipec}, keyed by version. The models
# (silero-vad: MIT, magika: Apache 2.0) come out of their packages on PyPI into the same cache; tests run them.
# So does the disassembler, which reads what any nvcc of CUDA 13 makes.
set -euo pipefail

onnx_version=1.22.0
onnx_sha256=ef40c0aaf0b643857ea9306fc7eddce17eaf9fb0407e4801f1fc5758443a38e0
cache=${PIPEC_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pipec}
prefix=$cache/onnx-$onnx_version
silero_version=6.2.3
silero_sha256=7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8
magika_version=1.0.3
magika_sha256=3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529
disassembler_version=13.2.51
cuobjdump_sha256=95c69d3ddf0c2c1f535ec44c3433a66aeee19f588d9d22f73356e20b25f12b50
nvdisasm_sha256=5a7acf77c55d6d2911ed6155d4d5bc156ffadf9df7a68a89b0c1155f4b13688c

packages=(
  g++ cmake ninja-build ccache git pkg-config python3 python3-venv ca-certificates
  libabsl-dev libprotobuf-dev protobuf-compiler nlohmann-json3-dev libzip-dev libxxhash-dev libdnnl-dev
  llvm-14-dev llvm-14-tools zlib1g-dev libtinfo-dev
  libgtest-dev libgmock-dev libboost-context-dev libbenchmark-dev strace chromium clang-14 libclang-rt-14-dev libomp-14-dev
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

# $work, a folder that goes away with this script, with a Python that has pip.
make_work_folder() {
  [ -z "${work:-}" ] || return 0
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  python3 -m venv "$work/python"
}

build_onnx() {
  if [ -f "$prefix/.complete" ]; then say "onnx $onnx_version is in $prefix"; return; fi
  say "building onnx $onnx_version into $prefix (a few minutes, once)"
  make_work_folder
  # onnx's CMake file asks for a newer CMake than Debian 12 has; PyPI carries one.
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

# fetch_files PACKAGE VERSION SHA256 FILE...: these files of the package's wheel, without their folders.
fetch_files() {
  local name=$1 version=$2 sha256=$3 folder=$cache/$1-$2
  shift 3
  if [ -f "$folder/.complete" ]; then say "$name $version is in $folder"; return; fi
  say "fetching $name $version into $folder"
  make_work_folder
  mkdir "$work/$name"
  # Whatever machine this is: nothing of the wheel is executed.
  "$work/python/bin/pip" download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 -d "$work" "$name==$version"
  local wheel=("$work/${name//-/_}-$version"-*.whl)
  echo "$sha256  ${wheel[0]}" | sha256sum --check --quiet
  python3 - "${wheel[0]}" "$work/$name" "$@" <<'P'
import pathlib, sys, zipfile
wheel, folder, *files = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    for file in files:
        path = pathlib.Path(folder) / pathlib.Path(file).name
        path.write_bytes(archive.read(file))
        if "/bin/" in file:
            path.chmod(0o755)
P
  touch "$work/$name/.complete"
  rm -rf "$folder"
  mv "$work/$name" "$folder"
}

start=$SECONDS
install_packages
build_onnx
fetch_files silero-vad "$silero_version" "$silero_sha256" silero_vad/data/silero_vad.onnx \
  "silero_vad-$silero_version.dist-info/licenses/LICENSE"
fetch_files magika "$magika_version" "$magika_sha256" magika/models/standard_v3_3/model.onnx \
  magika/models/standard_v3_3/config.min.json "magika-$magika_version.dist-info/METADATA"
if command -v nvcc >/dev/null && ! command -v cuobjdump >/dev/null; then
  fetch_files nvidia-cuda-cuobjdump "$disassembler_version" "$cuobjdump_sha256" nvidia/cu13/bin/cuobjdump
  fetch_files nvidia-cuda-nvdisasm "$disassembler_version" "$nvdisasm_sha256" nvidia/cu13/bin/nvdisasm  # cuobjdump calls it
fi
say "done in $((SECONDS - start)) s"
