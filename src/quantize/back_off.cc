#include "quantize/back_off.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "eval/lines.h"

namespace oasr::quantize {
namespace {

std::string layers_text(const BackOffStep& step, const std::string& precision) {
  return fmt::format("{} of the most sensitive layers at {} ({}; {:+} bytes)", step.layers.size(), precision,
                     eval::some_of(step.layers), step.bytes);
}

}  // namespace

Result<GateReport> back_off(GateReport first, std::span<const RankedLayer> ranking, const Evaluate& evaluate,
                            int evaluations) {
  if (first.passed || ranking.empty()) return first;
  const std::string precision = first.returned_to;
  std::vector<BackOffStep> steps;
  const auto judge_beginning = [&](std::size_t count) -> Result<GateReport> {
    BackOffStep step;
    for (const RankedLayer& layer : ranking.first(count)) {
      step.layers.push_back(layer.path);
      step.bytes += layer.bytes;
    }
    auto report = TRY(evaluate(step.layers));
    step.increase = report.increase;
    step.passed = report.passed;
    steps.push_back(std::move(step));
    return report;
  };
  const auto may_go_on = [&] { return static_cast<int>(steps.size()) < evaluations; };
  std::size_t failing = 0, passing = 0;  // lengths; passing 0: none is known
  GateReport found = std::move(first);
  for (std::size_t count = 1; passing == 0 && failing < ranking.size() && may_go_on(); count *= 2) {
    const std::size_t length = std::min(count, ranking.size());
    found = TRY(judge_beginning(length));
    (found.passed ? passing : failing) = length;
  }
  while (passing > failing + 1 && may_go_on()) {
    const std::size_t length = failing + (passing - failing) / 2;
    auto report = TRY(judge_beginning(length));
    (report.passed ? passing : failing) = length;
    if (report.passed) found = std::move(report);
  }
  const auto step = std::ranges::find_if(
      steps, [&](const BackOffStep& s) { return s.layers.size() == (passing > 0 ? passing : failing); });
  if (passing > 0) {
    found.verdict += " It passes with " + layers_text(*step, precision);
  } else if (failing == ranking.size()) {
    found.verdict += " It fails with all layers at " + precision + ", too";
  } else {
    found.verdict += fmt::format(" After {} evaluations it still fails", steps.size());
    if (step != steps.end()) found.verdict += " with " + layers_text(*step, precision);
  }
  found.verdict += ".";
  if (passing > failing + 1)
    found.verdict += fmt::format(" Fewer were not tried after {} evaluations.", steps.size());
  found.returned_to = precision;
  found.back_off = std::move(steps);
  return found;
}

}  // namespace oasr::quantize
