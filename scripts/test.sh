#!/usr/bin/env bash
# Builds the release preset with its tests and runs them.
#   scripts/test.sh [--all] [arguments for ctest]     --all: also the tests with the label `slow`
# Tests that need real weights or the full test data are skipped where these are not there
# (scripts/get_test_weights.sh fetches the weights, OASR_TEST_DATA names the data).
set -euo pipefail
cd "$(dirname "$0")/.."

which=(--label-exclude '^slow$')
if [[ "${1:-}" == --all ]]; then
  which=(--build-config slow)
  shift
fi

cmake --preset release --log-level=WARNING
cmake --build --preset release --parallel "$(nproc)"

status=0
ctest --preset release --parallel "$(nproc)" "${which[@]}" "$@" || status=$?

# What did not run, and why: GoogleTest's skips with their reasons, then the tests left out.
log=build/release/Testing/Temporary/LastTest.log
echo
echo "skipped inside the tests that ran:"
awk '/: Skipped$/ { getline reason; if (reason != "") count[reason]++ }
     /^skipped: / { count[substr($0, 10)]++ }
     END { for (r in count) { printf "  %4d  %s\n", count[r], r; n++ }
           if (!n) print "  none" }' "$log"
if [[ "${which[0]}" == --label-exclude ]]; then
  echo "left out (label slow; scripts/test.sh --all runs them):"
  ctest --test-dir build/release -N -C slow -L '^slow$' | sed -n 's/^ *Test *#[0-9]*: /        /p' | sort
fi
exit "$status"
