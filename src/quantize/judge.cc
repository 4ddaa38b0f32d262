#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "base/result.h"
#include "quantize/gate.h"

namespace oasr::quantize {
namespace {

constexpr std::size_t kLongestRun = 8;     // words that repeat together
constexpr std::size_t kRepetitions = 4;    // at least
constexpr std::size_t kRepeatedWords = 8;  // that they fill at least

bool repeats(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(std::move(word));
  for (std::size_t run = 1; run <= kLongestRun; ++run) {
    const std::size_t wanted = std::max(kRepetitions * run, kRepeatedWords) - run;
    std::size_t equal = 0;  // words in a row that are what stands a run before them
    for (std::size_t i = run; i < words.size(); ++i) {
      equal = words[i] == words[i - run] ? equal + 1 : 0;
      if (equal == wanted) return true;
    }
  }
  return false;
}

std::int64_t heard_words(const ErrorCounts& words) {
  return words.reference - words.deletions + words.insertions;
}

struct SymptomName {
  const char* name;
  std::int64_t Symptoms::*count;
};
constexpr SymptomName kSymptoms[] = {
    {"empty texts", &Symptoms::empty},
    {"texts that repeat themselves", &Symptoms::repeating},
    {"failed utterances", &Symptoms::failed},
};

Unexpected can_not_judge(std::string what) {
  return unexpected(ErrorCode::invalid_argument, "the two sides can not be judged: " + std::move(what));
}

double percent(const ErrorCounts& counts) {
  return 100.0 * static_cast<double>(counts.errors()) / static_cast<double>(counts.reference);
}

std::int64_t more_errors(const EvalDifference& group) { return group.b.errors() - group.a.errors(); }

Result<GateMode> compare_mode(const GateSide& full, const GateSide& quantized) {
  const auto comparison = TRY(compare_reports(full.report, quantized.report));
  if (!comparison.groups.front().difference) return can_not_judge("no reference has a word");
  GateMode mode;
  mode.name = full.mode;
  mode.groups = comparison.groups;
  for (EvalDifference group : comparison.lengths) {
    group.name += " " + comparison.length_unit;
    mode.groups.push_back(std::move(group));
  }
  mode.full = symptoms_of(full.report);
  mode.quantized = symptoms_of(quantized.report);
  for (const EvalChange& change : comparison.changes) {
    if (change.errors == 0) continue;
    (change.errors > 0 ? mode.worse : mode.better).push_back(full.report.utterances[change.a].id);
  }
  return mode;
}

bool has_more_symptoms(const GateMode& mode) {
  return std::ranges::any_of(
      kSymptoms, [&](const SymptomName& s) { return mode.quantized.*s.count > mode.full.*s.count; });
}

// "offline, word error goes from 4.08 to 4.49 %, by +0.414 points (95 % interval 0.120 to 0.701, p 0.004)"
std::string numbers_text(const GateMode& mode) {
  const EvalDifference& all = mode.groups.front();
  std::string text = fmt::format("{}, word error goes from {:.2f} to {:.2f} %, by {:+.3f} points", mode.name,
                                 percent(all.a), percent(all.b), *all.difference);
  if (all.low && all.p)
    text += fmt::format(" (95 % interval {:.3f} to {:.3f}, p {:.3f})", *all.low, *all.high, *all.p);
  return text;
}

// ": substitutions +12, deletions +3, insertions +9; most of it in 10-15 s (+1.200 points)"
std::string places_text(const GateMode& mode) {
  const EvalDifference& all = mode.groups.front();
  std::string text = fmt::format(": substitutions {:+}, deletions {:+}, insertions {:+}",
                                 all.b.substitutions - all.a.substitutions, all.b.deletions - all.a.deletions,
                                 all.b.insertions - all.a.insertions);
  const auto worst =
      std::max_element(mode.groups.begin() + 1, mode.groups.end(),
                       [](const auto& a, const auto& b) { return more_errors(a) < more_errors(b); });
  if (worst != mode.groups.end() && worst->difference) {
    text += fmt::format("; most of it in {} ({:+.3f} points)", worst->name, *worst->difference);
  }
  return text;
}

std::string symptoms_text(const GateMode& mode) {
  std::string text;
  for (const SymptomName& symptom : kSymptoms) {
    const std::int64_t before = mode.full.*symptom.count, after = mode.quantized.*symptom.count;
    if (after > before)
      text += fmt::format("; {}: {} at full precision, {} quantized", symptom.name, before, after);
  }
  return text;
}

std::string verdict_of(const GateReport& report) {
  std::string text =
      fmt::format("{} (at most {:+} points).", report.passed ? "Passed" : "Failed", report.limit);
  for (const GateMode& mode : report.modes) {
    const bool worse = *mode.groups.front().difference > report.limit;
    if (!report.passed && !worse && !has_more_symptoms(mode)) continue;
    std::string sentence = numbers_text(mode);
    if (worse) sentence += places_text(mode);
    sentence += symptoms_text(mode);
    sentence[0] = static_cast<char>(std::toupper(sentence[0]));
    text += " " + sentence + ".";
  }
  const std::int64_t words = report.modes.front().groups.front().a.reference;
  return text + fmt::format(" The recordings have {} words: one word is {:.2f} points.", words,
                            100.0 / static_cast<double>(words));
}

}  // namespace

Symptoms symptoms_of(const EvalReport& report) {
  Symptoms symptoms;
  for (const EvalUtterance& u : report.utterances) {
    if (!u.failure.empty()) {
      ++symptoms.failed;
    } else if (u.words.reference > 0 && heard_words(u.words) == 0) {
      ++symptoms.empty;
    } else if (repeats(u.normalized_hypothesis) && !repeats(u.normalized_reference)) {
      ++symptoms.repeating;
    }
  }
  return symptoms;
}

const BackOffStep* kept_step(const GateReport& report) {
  const BackOffStep* kept = nullptr;
  for (const BackOffStep& step : report.back_off) {
    const bool fewer = kept != nullptr && step.passed && step.layers.size() < kept->layers.size();
    if (kept == nullptr || !kept->passed || fewer) kept = &step;
  }
  return kept;
}

Result<GateReport> judge(const GateOptions& options, std::span<const GateSide> full,
                         std::span<const GateSide> quantized) {
  const auto same_mode = [](const GateSide& a, const GateSide& b) { return a.mode == b.mode; };
  if (full.empty() || !std::ranges::equal(full, quantized, same_mode))
    return can_not_judge("they have other modes");
  GateReport report;
  report.manifest = options.manifest;
  report.normalizer = options.normalizer;
  report.limit = options.max_wer_increase;
  const auto& utterances = full.front().report.utterances;
  report.utterances = static_cast<std::int64_t>(utterances.size());
  for (const EvalUtterance& u : utterances) report.seconds += u.seconds;
  report.passed = true;
  for (std::size_t i = 0; i < full.size(); ++i) {
    auto mode = TRY(compare_mode(full[i], quantized[i]));
    if (mode.full.failed == report.utterances) {
      return unexpected(ErrorCode::bad_audio,
                        "full precision could decode nothing: " + utterances.front().failure,
                        options.manifest);
    }
    if (mode.full.failed + mode.full.empty == report.utterances) {
      return unexpected(ErrorCode::bad_audio, "full precision hears nothing in the recordings", options.manifest,
                        "judge with recordings of speech that the model understands");
    }
    const double increase = *mode.groups.front().difference;
    report.increase = i == 0 ? increase : std::max(report.increase, increase);
    report.passed = report.passed && increase <= report.limit && !has_more_symptoms(mode);
    report.modes.push_back(std::move(mode));
  }
  report.verdict = verdict_of(report);
  return report;
}

}  // namespace oasr::quantize
