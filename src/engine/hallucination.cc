#include "engine/hallucination.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace oasr::engine {
namespace {

constexpr int kWindowFrames = 3000;

std::int64_t frame_at(double seconds) {
  return static_cast<std::int64_t>(std::nearbyint(seconds * 100));
}

// Very short, long or improbable words score high.
double oddness(const Word& word) {
  const double duration = word.end - word.start;
  double score = word.probability < 0.15 ? 1.0 : 0.0;
  if (duration < 0.133) score += (0.133 - duration) * 15;
  if (duration > 2.0) score += duration - 2.0;
  return score;
}

bool is_odd(const Segment& segment) {
  constexpr std::string_view kMarks = "\"'“¿([{-\"'.。,，!！?？:：”)]}、";
  double score = 0;
  int words = 0;
  for (const Word& word : segment.words) {
    if (kMarks.find(word.text) != std::string_view::npos) continue;
    if (++words > 8) break;
    score += oddness(word);
  }
  if (segment.words.empty()) return false;
  return score >= 3 || score + 0.01 >= std::min(words, 8);
}

using Place = std::vector<Segment>::const_iterator;

Place next_with_words(Place from, Place end) {
  return std::find_if(from, end, [](const Segment& s) { return !s.words.empty(); });
}

}  // namespace

std::optional<double> speech_end(const std::vector<Segment>& segments) {
  for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment) {
    if (!segment->words.empty()) return segment->words.back().end;
  }
  if (segments.empty()) return std::nullopt;
  return segments.back().end;
}

void seek_to_last_word(WindowSegments& window, const WindowPlace& place) {
  if (window.single_timestamp_ending) return;
  const auto end = speech_end(window.segments);
  if (end && *end > seconds_at(place.seek)) window.seek = frame_at(*end);
}

bool skip_hallucinations(WindowSegments& window, const WindowPlace& place, double threshold) {
  const double offset = seconds_at(place.seek);
  const double window_end = seconds_at(place.seek + kWindowFrames);
  auto& segments = window.segments;
  if (const auto end = speech_end(segments);
      !window.single_timestamp_ending && end && *end > offset) {
    window.seek = window_end - *end > threshold ? frame_at(*end) : place.seek + place.frames;
  }
  const auto first = next_with_words(segments.begin(), segments.end());
  if (first != segments.end() && is_odd(*first)) {
    const double gap = first->start - offset;
    if (gap > threshold) {
      window.seek = place.seek + frame_at(gap);
      return false;
    }
  }
  double previous_end = place.last_speech;
  for (auto segment = segments.begin(); segment != segments.end(); ++segment) {
    if (segment->words.empty()) continue;
    if (is_odd(*segment)) {
      const auto next = next_with_words(segment + 1, segments.end());
      const double next_start =
          next != segments.end() ? next->words.front().start : offset + seconds_at(place.frames);
      const bool silence_before = segment->start - previous_end > threshold ||
                                  segment->start < threshold || segment->start - offset < 2.0;
      const bool silence_after = next_start - segment->end > threshold ||
                                 (next != segments.end() && is_odd(*next)) ||
                                 window_end - segment->end < 2.0;
      if (silence_before && silence_after) {
        window.seek = frame_at(std::max(offset + 1, segment->start));
        if (place.total_frames && seconds_at(*place.total_frames) - segment->end < threshold) {
          window.seek = *place.total_frames;
        }
        segments.erase(segment, segments.end());
        break;
      }
    }
    previous_end = segment->end;
  }
  return true;
}

}  // namespace oasr::engine
