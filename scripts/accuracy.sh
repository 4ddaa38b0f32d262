#!/usr/bin/env bash
# Measures word error with `oasr eval` and compares it with ci/accuracy.json.
#   scripts/accuracy.sh [--quick] [--update] [--results DIR] [name…]      see tools/accuracy_gate.py
# Needs weights (scripts/get_test_weights.sh; OASR_TEST_WEIGHTS) and the full test data (OASR_TEST_DATA).
set -euo pipefail
cd "$(dirname "$0")/.."

cmake --preset release --log-level=WARNING
cmake --build --preset release --target oasr_cli >&2
exec python3 tools/accuracy_gate.py "$@"
