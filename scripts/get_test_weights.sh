#!/usr/bin/env bash
# Real Whisper weights for the tests: tiny.en and base, each in the containers people have.
#   scripts/get_test_weights.sh
# They go to $OASR_TEST_WEIGHTS, else to test-weights in the model cache, where the tests look.
# With the full test data (OASR_TEST_DATA, else ../shared) all containers are made by its tool, which
# needs python3 with numpy and pip; openai-pt needs torch and is left out without it. Otherwise the
# models that `oasr pull` fetches serve the tests of their own container.
set -euo pipefail
cd "$(dirname "$0")/.."

cache="${OASR_CACHE_DIR:-$HOME/.cache/oasr}"
out="${OASR_TEST_WEIGHTS:-$cache/test-weights}"
tool="${OASR_TEST_DATA:-../shared}/tools/get_whisper.py"
models=(tiny.en base)
formats=(ct2 hf ggml)

# The first Python with NumPy and pip: the system's packages serve only the system's own python3.
find_python() {
  local candidate
  for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import numpy, pip' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
}

make_all() {  # python
  local python="$1" model mark
  if "$python" -c 'import torch' 2>/dev/null; then
    formats+=(openai-pt)
  else
    echo "skipped: openai-pt weights need torch, which is not installed"
  fi
  for model in "${models[@]}"; do
    # A mark, written last, tells a finished set from an interrupted one.
    mark="$out/$model/.complete-$(IFS=-; echo "${formats[*]}")"
    if [[ -e "$mark" ]]; then
      echo "$model: already there"
      continue
    fi
    "$python" -B "$tool" "$model" --out "$out" --format "${formats[@]}"
    touch "$mark"
  done
}

link_pulled() {
  local model path name
  [[ -x build/release/oasr ]] || { echo "build/release/oasr is not built" >&2; exit 1; }
  for model in "${models[@]}"; do
    path="$(build/release/oasr pull --quiet "$model")"
    if [[ -f "$path" ]]; then
      name="$model.pt"
    elif [[ -f "$path/model.bin" ]]; then
      name=ct2
    else
      name=hf
    fi
    mkdir -p "$out/$model"
    ln -sfn "$path" "$out/$model/$name"
    echo "$model: $out/$model/$name (skipped: the other containers need the full test data)"
  done
}

mkdir -p "$out"
if [[ ! -f "$tool" ]]; then
  link_pulled
elif python="$(find_python)" && [[ -n "$python" ]]; then
  make_all "$python"
else
  echo "skipped: making all containers needs python3 with numpy and pip"
  link_pulled
fi
