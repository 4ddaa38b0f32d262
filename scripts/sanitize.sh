#!/usr/bin/env bash
# Builds the dev preset (AddressSanitizer, UndefinedBehaviorSanitizer) and runs its tests.
#   scripts/sanitize.sh [arguments for ctest]
set -euo pipefail
cd "$(dirname "$0")/.."

cmake --preset dev --log-level=WARNING
cmake --build --preset dev --parallel "$(nproc)"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
ctest --preset dev --parallel "$(nproc)" "$@"
