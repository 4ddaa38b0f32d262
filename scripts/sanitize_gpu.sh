#!/usr/bin/env bash
# Runs the tests of GPUs (those of `ctest -L gpu`) under NVIDIA's compute-sanitizer, each program as several processes
# that share its tests. Prints a line a process; logs of those with findings stay.
#   scripts/sanitize_gpu.sh [options] BUILD [program…]
# BUILD: a folder with the test programs, such as build/release. program: attention_cuda, whisper_cuda, …; all by default.
#   --tool memcheck|racecheck|initcheck|synccheck   memcheck by default
#   --jobs N     processes at once, 4 by default; all share one card's memory
#   --shards N   processes that a program's tests are spread over, as many as jobs by default (fewer for fewer tests)
#   --limit S    seconds for a process, 900 by default
#   --filter F   of tests, as GoogleTest's --gtest_filter (times of layers are not those of a card under a tool:
#                --filter '-*LayerTimes*:*TimesItsLayers*' leaves out what compares them)
#   --logs DIR   where logs go, a new folder in TMPDIR by default
# compute-sanitizer is looked for in PATH, CUDA_HOME, CUDA_PATH and /usr/local/cuda.
# Status 0: every process ended, its tests passed and the tool found nothing. 1: not so; nothing that was skipped for want of
# a GPU counts as clean. 2: wrong usage.
set -uo pipefail

fail() { echo "sanitize_gpu: $1" >&2; exit "${2:-2}"; }
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
number() { [[ "$2" =~ ^[1-9][0-9]*$ ]] || fail "$1 takes a number, not '$2'"; }

find_tool() {
  command -v compute-sanitizer && return
  local root place
  for root in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
    for place in bin compute-sanitizer; do
      [[ -n "$root" && -x "$root/$place/compute-sanitizer" ]] && echo "$root/$place/compute-sanitizer" && return
    done
  done
  return 1
}

# The number in the first line of a log that matches, or nothing.
number_in() { sed -n "s/$2/\1/p" "$1" | head -1; }

# One process: program, shard, shards. Its line begins with `ok` or `BAD`.
run_one() {
  local program="$1" shard="$2" shards="$3" name log status began ended what=() verdict=ok
  name="$(basename "$program")"
  name="${name#oasr_test_}"
  log="$logs/$tool-$name-$shard.txt"
  began=$SECONDS
  GTEST_TOTAL_SHARDS="$shards" GTEST_SHARD_INDEX="$shard" timeout --kill-after=20 "$limit" \
    "$sanitizer" --tool "$tool" --print-limit 20 "$program" >"$log" 2>&1
  status=$?
  ended=$((SECONDS - began))
  local errors passed skipped failed
  if [[ "$tool" == racecheck ]]; then
    errors="$(number_in "$log" '^=* RACECHECK SUMMARY: \([0-9]*\) hazards\{0,1\} displayed.*')"
  else
    errors="$(number_in "$log" '^=* ERROR SUMMARY: \([0-9]*\) errors\{0,1\}.*')"
  fi
  passed="$(number_in "$log" '^\[  PASSED  \] \([0-9]*\) tests\{0,1\}.*')"
  skipped="$(grep -c '^\[  SKIPPED \] .* ms)$' "$log")"
  failed="$(grep -c '^\[  FAILED  \] .* ms)$' "$log")"
  if ((status == 124 || status == 137)); then
    what+=("did not end in $limit s")
  elif [[ -z "$errors" ]]; then
    what+=("ended with status $status and without a summary of $tool")
  elif [[ -z "$passed" ]]; then
    what+=("ended with status $status before its tests did")
  fi
  [[ -n "$errors" && "$errors" != 0 ]] && what+=("$errors findings of $tool")
  ((failed > 0)) && what+=("$failed tests failed")
  grep -q 'no GPU: ' "$log" && what+=("no GPU")
  ((status != 0 && ${#what[@]} == 0)) && what+=("ended with status $status")
  ((${#what[@]})) && verdict=BAD
  local line part
  printf -v line '%-3s %-9s %-26s %3d of %-3d %5d s  %3d passed' "$verdict" "$tool" "$name" $((shard + 1)) "$shards" \
    "$ended" "${passed:-0}"
  ((skipped > 0)) && line+=", $skipped skipped"
  for part in "${what[@]}"; do line+=", $part"; done
  if [[ "$verdict" == ok ]]; then rm -f "$log"; else line+=", see $log"; fi
  printf '%s\n' "$line"  # at once: others print, too
}

tool=memcheck jobs=4 shards='' limit=900 logs=''
while (($#)); do
  case "$1" in
    --tool | --jobs | --shards | --limit | --filter | --logs)
      (($# > 1)) || fail "$1 takes a value"
      case "$1" in
        --tool) [[ "$2" =~ ^(memcheck|racecheck|initcheck|synccheck)$ ]] || fail "there is no tool '$2'"; tool="$2" ;;
        --jobs) number "$1" "$2"; jobs="$2" ;;
        --shards) number "$1" "$2"; shards="$2" ;;
        --limit) number "$1" "$2"; limit="$2" ;;
        --filter) export GTEST_FILTER="$2" ;;
        --logs) logs="$2" ;;
      esac
      shift 2 ;;
    -*) usage ;;
    *) break ;;
  esac
done
(($#)) || usage
build="$1"
shift
[[ -d "$build" ]] || fail "'$build' is no folder"
sanitizer="$(find_tool)" || fail "there is no compute-sanitizer: it is a part of the CUDA toolkit (put its bin into PATH)" 1
if [[ -n "$logs" ]]; then mkdir -p "$logs" || exit 1; else logs="$(mktemp -d)" || exit 1; fi
export tool limit logs sanitizer
export -f run_one number_in

mapfile -t there < <(find "$build" -type f -perm -u+x \( -name 'oasr_test_*_cuda' -o -name oasr_test_gpu \) | sort)
programs=()
if (($#)); then
  for name in "$@"; do
    found=''
    for program in "${there[@]}"; do [[ "$(basename "$program")" == "oasr_test_${name#oasr_test_}" ]] && found="$program"; done
    [[ -n "$found" ]] || fail "'$build' has no program oasr_test_${name#oasr_test_}: build it, or name another"
    programs+=("$found")
  done
else
  programs=("${there[@]}")
fi
((${#programs[@]})) || fail "'$build' has no test programs of GPUs"

work=()
without=0
for program in "${programs[@]}"; do
  tests="$("$program" --gtest_list_tests | grep -c '^  ')"
  if ((tests == 0)); then
    if [[ -z "${GTEST_FILTER:-}" ]]; then
      echo "BAD $tool $(basename "$program") lists no tests"
      without=$((without + 1))
    fi
    continue
  fi
  most="${shards:-$jobs}"
  count=$((tests < most ? tests : most))
  for ((i = 0; i < count; ++i)); do work+=("$program" "$i" "$count"); done
done
((${#work[@]} || without)) || fail "no test is left by the filter '${GTEST_FILTER:-}'"

began=$SECONDS
lines="$logs/lines.txt"
: >"$lines"
((${#work[@]})) && printf '%s\0' "${work[@]}" | xargs -0 -n 3 -P "$jobs" bash -c 'run_one "$@"' _ | tee "$lines"
processes=$((${#work[@]} / 3))
good="$(grep -c '^ok ' "$lines")"
passed="$(sed -n 's/.* \([0-9]*\) passed.*/\1/p' "$lines" | awk '{ n += $1 } END { print n + 0 }')"
bad=$((processes - good + without))
rm -f "$lines"
echo "$tool: ${#programs[@]} programs, $processes processes, $passed tests passed, $((SECONDS - began)) s; $bad not clean"
((bad == 0)) && { rmdir "$logs" 2>/dev/null; exit 0; }
exit 1
