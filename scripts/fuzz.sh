#!/usr/bin/env bash
# Builds every fuzz target with clang and the sanitizers and runs each for some seconds.
#   scripts/fuzz.sh [seconds a target, default 60] [target…]
# Corpora grow in build/fuzz/corpus, findings lie in build/fuzz/findings; status 1 if there is one.
# A fixed finding belongs into the target's seed folder, so that the tests keep it fixed.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds="${1:-60}"
[[ "$seconds" =~ ^[0-9]+$ ]] || { echo "usage: scripts/fuzz.sh [seconds] [target…]" >&2; exit 2; }
shift || true
command -v clang++ >/dev/null || { echo "fuzz: clang++ is needed (apt-get install clang)" >&2; exit 1; }

cmake --preset fuzz --log-level=WARNING
work="$PWD/build/fuzz"
names=("$@")
((${#names[@]})) || mapfile -t names < <(cut -d' ' -f1 "$work/fuzz/targets.txt" | grep .)
((${#names[@]})) || { echo "fuzz: there are no targets" >&2; exit 1; }
cmake --build --preset fuzz --parallel "$(nproc)" --target "${names[@]/#/oasr_fuzz_}"

run_one() {  # work, seconds, name: one line of the table
  local work="$1" seconds="$2" name="$3" seeds log result=ok
  seeds="$(sed -n "s/^$name //p" "$work/fuzz/targets.txt")"
  log="$work/log/$name.txt"
  mkdir -p "$work/corpus/$name" "$work/findings/$name" "$work/log"
  "$work/fuzz/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=1048576 \
    -print_final_stats=1 -artifact_prefix="$work/findings/$name/" \
    "$work/corpus/$name" "$seeds" >"$log" 2>&1 || result="FOUND, see $log"
  local runs coverage
  runs="$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
  coverage="$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "$log" | tail -1)"
  printf '| %-24s | %12s | %8s | %s |\n' "$name" "${runs:-?}" "${coverage:-?}" "$result"
}
export -f run_one

printf '| %-24s | %12s | %8s | %s |\n' target runs coverage "result after $seconds s"
printf '|---|---|---|---|\n'
table="$(printf '%s\n' "${names[@]}" |
  xargs -P "$(nproc)" -I{} bash -c 'run_one "$@"' _ "$work" "$seconds" {})"
echo "$table"
! grep -q FOUND <<<"$table"
