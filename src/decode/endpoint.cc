#include "decode/endpoint.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace oasr::decode {
namespace {

std::string explain(int number, const EndpointRule& rule, const UtteranceProgress& progress) {
  std::string why = fmt::format("rule {}:", number);
  const bool silence = rule.min_trailing_silence > 0;
  if (silence) {
    fmt::format_to(std::back_inserter(why), " {:.2f} s of silence{} ({:g} s end an utterance)",
                   progress.trailing_silence, progress.contains_nonsilence ? " after speech" : "",
                   rule.min_trailing_silence);
  }
  if (rule.min_utterance_length > 0) {
    fmt::format_to(std::back_inserter(why), "{} the utterance is {:.2f} s long (from {:g} s on)",
                   silence ? " and" : "", progress.length, rule.min_utterance_length);
  }
  if (!silence && rule.min_utterance_length <= 0) why += " something was recognised";
  return why;
}

}  // namespace

Status check_endpoint_options(const EndpointOptions& options) {
  for (std::size_t i = 0; i < options.rules.size(); ++i) {
    const EndpointRule& rule = options.rules[i];
    const std::string where = fmt::format("endpoint rule {}", i + 1);
    for (const double seconds : {rule.min_trailing_silence, rule.min_utterance_length}) {
      if (std::isfinite(seconds) && seconds >= 0) continue;
      return unexpected(ErrorCode::invalid_argument,
                        fmt::format("{} is not a time of 0 s or more", seconds), where);
    }
    if (!rule.must_contain_nonsilence && rule.min_trailing_silence <= 0 &&
        rule.min_utterance_length <= 0) {
      return unexpected(ErrorCode::invalid_argument, "the rule would end every utterance at once",
                        where, "give a silence, a length, or must_contain_nonsilence");
    }
  }
  return {};
}

UtteranceProgress progress_of(int frames, int trailing, bool has_tokens, double seconds_per_frame) {
  return {has_tokens, trailing * seconds_per_frame, frames * seconds_per_frame};
}

std::optional<Endpoint> find_endpoint(const EndpointOptions& options,
                                      const UtteranceProgress& progress) {
  int number = 0;
  for (const EndpointRule& rule : options.rules) {
    ++number;
    if (rule.must_contain_nonsilence && !progress.contains_nonsilence) continue;
    if (progress.trailing_silence < rule.min_trailing_silence) continue;
    if (progress.length < rule.min_utterance_length) continue;
    return Endpoint{number, explain(number, rule, progress)};
  }
  return std::nullopt;
}

}  // namespace oasr::decode
