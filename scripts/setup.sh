#!/usr/bin/env bash
# From a fresh Debian 12 or Ubuntu 24.04 machine to a transcript: installs the system packages,
# builds build/release/oasr, pulls the model `base` and transcribes a bundled recording.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  # building
  g++ cmake ninja-build pkg-config ccache
  # libraries
  libcli11-dev nlohmann-json3-dev libfmt-dev zlib1g-dev libssl-dev libcurl4-openssl-dev
  libsndfile1-dev libavformat-dev libavcodec-dev libavutil-dev libswresample-dev libsoxr-dev
  libpcre2-dev libutf8proc-dev libyaml-cpp-dev libsentencepiece-dev
  # running: certificates for the download
  ca-certificates
  # testing: GoogleTest, and Python for the linters and for preparing test weights
  libgtest-dev libgmock-dev python3 python3-numpy python3-pip
)

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

# Words of the list that dpkg does not know as installed.
missing_packages() {
  local name
  for name in "${packages[@]}"; do
    [[ "$(dpkg-query -W -f='${Status}' "$name" 2>/dev/null)" == *" installed" ]] || echo "$name"
  done
}

install_packages() {
  [[ -x /usr/bin/apt-get && -x /usr/bin/dpkg-query ]] ||
    fail "this script knows Debian and Ubuntu; elsewhere install the counterparts of: ${packages[*]}"
  local missing sudo=()
  mapfile -t missing < <(missing_packages)
  if ((${#missing[@]} == 0)); then
    echo "all packages are installed"
    return
  fi
  if ((EUID != 0)); then
    command -v sudo >/dev/null || fail "run this as root, or install sudo; missing: ${missing[*]}"
    sudo=(sudo)
  fi
  echo "installing: ${missing[*]}"
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q ||
    fail "apt-get update failed: is the network up?"
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${missing[@]}" ||
    fail "apt-get install failed; the packages exist in Debian 12 and in Ubuntu 24.04 or later"
}

check_cmake() {
  local version
  version="$(cmake --version | sed -n '1s/.* //p')"
  printf '%s\n' 3.25 "$version" | sort -V -C ||
    fail "CMake $version is too old: 3.25 or later is needed (Debian 12, Ubuntu 24.04)"
}

# `ON, for 90a` or `OFF`, as CMake says it.
say_gpus() {
  if [[ "$1" == ON* ]]; then
    echo "NVIDIA GPUs: $1. Other cards: cmake --preset release -DOASR_CUDA_ARCHITECTURES=86 (docs/building.md)"
  else
    echo "NVIDIA GPUs: not built. With the CUDA toolkit installed, run"
    echo "  cmake --preset release -DOASR_CUDA=ON -DOASR_CUDA_ARCHITECTURES=86"
    echo "for a card of compute capability 8.6, and this script again (docs/building.md)"
  fi
}

say "system packages"
install_packages
check_cmake

say "building build/release/oasr"
configured="$(cmake --preset release)" || fail "CMake failed (see above)"
cmake --build --preset release --parallel "$(nproc)" --target oasr_cli
say_gpus "$(sed -n 's/^-- NVIDIA GPUs: //p' <<<"$configured")"

if [[ "${1:-}" == --build-only ]]; then
  exit 0
fi

say "pulling the model base"
build/release/oasr pull base || fail "the model could not be pulled (see above for what was tried)"

say "transcribing assets/samples/jfk.flac"
build/release/oasr transcribe --model base --language en --output-format txt assets/samples/jfk.flac ||
  fail "transcribing failed"
