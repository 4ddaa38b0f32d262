// The plots of the page: one column a layer in the order of the model, blocks shaded.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "eval/report.h"
#include "eval/svg.h"
#include "quantize/report_parts.h"

namespace oasr::quantize {
namespace {

using eval::escaped_html;
using eval::svg_label;
using eval::svg_line;

constexpr double kLeft = 54, kTop = 14, kRight = 10, kAxis = 46;
constexpr double kLetter = 6.4;  // width of a letter of a label

// "encoder.encoders.3.self_attn.linear_out": stage "encoder.encoders", block "3". A layer outside
// of blocks has neither.
struct Place {
  std::string_view stage, block;
  friend bool operator==(const Place&, const Place&) = default;
};

Place place_of(std::string_view path) {
  for (std::size_t dot = path.find('.'); dot != path.npos;) {
    const auto next = path.find('.', dot + 1);
    if (next == path.npos) break;
    const auto part = path.substr(dot + 1, next - dot - 1);
    if (part.find_first_not_of("0123456789") == part.npos) return {path.substr(0, dot), part};
    dot = next;
  }
  return {};
}

// The name of a stage in at most so many letters: its last parts, "left_decoder.decoders", if they fit.
std::string stage_label(std::string_view stage, std::size_t most) {
  for (auto dot = stage.find('.'); stage.size() > most && dot != stage.npos; dot = stage.find('.')) {
    stage.remove_prefix(dot + 1);
  }
  return eval::shortened(std::string(stage), most);
}

// Values to heights.
struct Scale {
  double low = 0, high = 1;
  bool logarithmic = false;

  // 0 at the bottom to 1 at the top; what lies outside is at the edge.
  double at(double value) const {
    const double share = logarithmic ? std::log(std::max(value, low) / low) / std::log(high / low)
                                     : (value - low) / (high - low);
    return std::clamp(share, 0.0, 1.0);
  }
  std::vector<double> ticks() const {
    std::vector<double> all;
    if (logarithmic) {
      for (double tick = low; tick <= high * 1.001; tick *= 10) all.push_back(tick);
    } else {
      const double step = eval::tick_step(high - low);
      const auto first = std::llround(low / step), last = std::llround(high / step);
      for (auto i = first; i <= last; ++i) all.push_back(static_cast<double>(i) * step);
    }
    return all;
  }
};

// Whole steps of ticks around values.
Scale linear_scale(double low, double high) {
  const double step = eval::tick_step(std::max(high - low, 1e-9));
  const double bottom = std::floor(low / step) * step, top = std::ceil(high / step) * step;
  return {.low = bottom, .high = top > bottom ? top : bottom + step};
}

Scale log_scale(double low, double high) {
  const double bottom = std::pow(10.0, std::floor(std::log10(low)));
  const double top = std::pow(10.0, std::ceil(std::log10(high)));
  return {.low = bottom, .high = top > bottom ? top : bottom * 10, .logarithmic = true};
}

class LayerChart {
 public:
  LayerChart(const Layers& layers, Scale scale, double height, std::string_view axis)
      : layers_(layers),
        scale_(scale),
        height_(height),
        step_(std::clamp(std::floor(960 / static_cast<double>(layers.size())), 5.0, 24.0)) {
    svg_ = fmt::format(
        "<svg viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\" "
        "aria-label=\"{2}\">",
        right() + kRight, bottom() + kAxis, escaped_html(axis));
    shade_blocks();
    for (const double tick : scale_.ticks()) {
      svg_ += svg_line(kLeft, y(tick), right(), y(tick), tick == scale_.low ? "axis" : "grid");
      svg_ += svg_label(kLeft - 6, y(tick) + 4, "end", fmt::format("{:g}", tick), "tick");
    }
    svg_ += fmt::format(
        "<text class=\"tick\" transform=\"translate(12 {:.0f}) rotate(-90)\" "
        "text-anchor=\"middle\">{}</text>",
        kTop + height_ / 2, escaped_html(axis));
  }

  double y(double value) const { return kTop + height_ * (1 - scale_.at(value)); }
  double center(std::size_t i) const { return kLeft + step_ * (static_cast<double>(i) + 0.5); }
  double step() const { return step_; }

  // The marks of a layer; its whole column shows the tooltip.
  void add(std::size_t i, const std::string& marks, std::string_view note) {
    svg_ += fmt::format(
        "<g><title>{}&#10;{}</title><rect class=\"hit\" x=\"{:.1f}\" y=\"{:.0f}\" "
        "width=\"{:.1f}\" height=\"{:.0f}\"/>{}</g>",
        escaped_html(layers_[i]->path), escaped_html(note), center(i) - step_ / 2, kTop, step_,
        height_, marks);
  }
  std::string bar(std::size_t i, double from, double to, double width, const char* kind) const {
    return fmt::format(
        "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>", kind,
        center(i) - width / 2, y(to), width, std::max(y(from) - y(to), 0.8));
  }
  std::string dot(std::size_t i, double value, double radius, const char* kind) const {
    return fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"/>", kind,
                       center(i), y(value), radius);
  }
  std::string svg() const { return svg_ + "</svg>"; }

 private:
  double bottom() const { return kTop + height_; }
  double right() const { return kLeft + step_ * static_cast<double>(layers_.size()); }

  // Calls f(first, last, key) for runs of layers with the same key.
  template <class Key, class F>
  void runs(Key key, F f) const {
    for (std::size_t first = 0; first < layers_.size();) {
      std::size_t last = first;
      const auto of = [&](std::size_t i) { return key(place_of(layers_[i]->path)); };
      while (last + 1 < layers_.size() && of(last + 1) == of(first)) ++last;
      f(first, last, of(first));
      first = last + 1;
    }
  }

  void shade_blocks() {
    bool shaded = false;
    runs([](const Place& place) { return place; },
         [&](std::size_t first, std::size_t last, const Place& place) {
           const double x = center(first) - step_ / 2, width = center(last) + step_ / 2 - x;
           shaded = !shaded && !place.block.empty();
           if (shaded) {
             svg_ += fmt::format(
                 "<rect class=\"band\" x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" "
                 "height=\"{:.0f}\"/>",
                 x, kTop, width, height_);
           }
           if (!place.block.empty() && width >= kLetter * static_cast<double>(place.block.size())) {
             svg_ += svg_label(x + width / 2, bottom() + 14, "middle", place.block, "tick");
           }
         });
    runs([](const Place& place) { return place.stage; },
         [&](std::size_t first, std::size_t last, std::string_view stage) {
           const double x = center(first) - step_ / 2, width = center(last) + step_ / 2 - x;
           const auto most = static_cast<std::size_t>((width - 8) / kLetter);
           if (stage.empty() || most < 3) return;
           svg_ += svg_line(x + 2, bottom() + 20, x + width - 2, bottom() + 20, "axis");
           svg_ += svg_label(x + width / 2, bottom() + 34, "middle", stage_label(stage, most));
         });
  }

  const Layers& layers_;
  Scale scale_;
  double height_, step_;
  std::string svg_;
};

// The median to the 99th percentile thick, up to the greatest thin.
std::string range_plot(const Layers& layers, const Scale& scale, const char* kind,
                       std::string_view axis, const std::vector<float> LayerEntry::*amax) {
  LayerChart chart(layers, scale, 150, axis);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto spread = spread_of(layers[i]->*amax);
    if (!spread) continue;
    const auto& [median, p99, greatest] = *spread;
    const double width = chart.step() * 0.6;
    chart.add(i,
              chart.bar(i, p99, greatest, width * 0.35, kind) +
                  chart.bar(i, median, p99, width, kind) +
                  chart.bar(i, greatest, greatest, width, "peak"),
              fmt::format("median {}, 99 % below {}, greatest {} ({:.1f} times the median)",
                          short_number(median), short_number(p99), short_number(greatest),
                          spread->ratio()));
  }
  return "<div class=\"scroll\">" + chart.svg() + "</div>";
}

// The top of an axis for bars: a few that are far above all others go beyond it.
double top_of_bars(std::vector<double> bars) {
  constexpr std::size_t kFew = 2;
  constexpr double kFar = 3, kRoom = 1.25;
  std::ranges::sort(bars, std::greater<>());
  const double others = bars.size() > kFew ? bars[kFew] : 0;
  return others > 0 && bars.front() > kFar * others ? kRoom * others : bars.front();
}

// A bar before and one after, the shorter in front. Beside one that goes beyond the axis stands what it is.
std::string pair_plot(const Layers& layers, std::string_view axis,
                      const std::function<std::optional<double>(const LayerEntry&)>& before,
                      const std::function<std::optional<double>(const LayerEntry&)>& after,
                      std::string_view unit) {
  std::vector<double> bars;
  for (const auto* layer : layers) {
    bars.push_back(std::max(before(*layer).value_or(0), after(*layer).value_or(0)));
  }
  if (bars.empty() || std::ranges::max(bars) == 0) return {};
  const Scale scale = linear_scale(0, top_of_bars(bars));
  LayerChart chart(layers, scale, 170, axis);
  double line = kTop + 11;  // of the next label
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto from = before(*layers[i]), to = after(*layers[i]);
    std::string marks, note;
    if (from) {
      marks = chart.bar(i, 0, *from, chart.step() * 0.8, "before");
      note += fmt::format("before {:.3g} {}", *from, unit);
    }
    if (to) {
      const std::string bar = chart.bar(i, 0, *to, chart.step() * 0.8, "after");
      marks = *to > from.value_or(*to) ? bar + marks : marks + bar;
      note += fmt::format("{}after {:.3g} {}", note.empty() ? "" : ", ", *to, unit);
    }
    if (bars[i] > scale.high) {
      const bool left = i * 2 > layers.size();
      marks += svg_label(chart.center(i) + (left ? -1 : 1) * (chart.step() * 0.5 + 3), line,
                         left ? "end" : "start", note, "beyond");
      line += 15;
    }
    if (!note.empty()) chart.add(i, marks, note);
  }
  return "<div class=\"scroll\">" + chart.svg() + "</div>";
}

}  // namespace

std::string range_plots(const Report& report) {
  Layers layers;
  double low = 0, high = 0;
  bool any_smoothed = false;
  for (const auto& layer : report.layers) {
    const auto spread = spread_of(layer.channel_amax);
    if (!spread) continue;
    const auto smoothed = spread_of(layer.channel_amax_smoothed);
    any_smoothed = any_smoothed || smoothed;
    for (const auto& s : {*spread, smoothed.value_or(*spread)}) {
      low = layers.empty() && low == 0 ? s.median : std::min(low, s.median);
      high = std::max(high, s.greatest);
    }
    layers.push_back(&layer);
  }
  if (layers.empty()) return {};
  const auto scale = log_scale(low, high);
  auto plots = range_plot(layers, scale, "before", "as it comes", &LayerEntry::channel_amax);
  if (any_smoothed) {
    plots += range_plot(layers, scale, "after", "smoothed", &LayerEntry::channel_amax_smoothed);
  }
  return plots;
}

std::string error_plot(const Report& report, std::size_t highlighted) {
  auto worst = worst_first(report);
  if (worst.empty()) return {};
  worst.resize(std::min(highlighted, worst.size()));
  Layers layers;
  std::vector<double> values;  // an exact layer is at the top, whatever the scale
  for (const auto& layer : report.layers) {
    if (!layer.alone) continue;
    layers.push_back(&layer);
    for (const auto& error : {layer.alone, layer.cumulative}) {
      if (error && std::isfinite(error->snr_db)) values.push_back(error->snr_db);
    }
  }
  if (values.empty()) values = {0};
  const auto [low, high] = std::ranges::minmax(values);
  const Scale scale = linear_scale(low, high);
  LayerChart chart(layers, scale, 240, "signal to error, dB");
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto& layer = *layers[i];
    const auto rank = std::ranges::find(worst, &layer) - worst.begin();
    const bool is_worst = rank < std::ssize(worst);
    auto note = "alone " + decibels(layer.alone->snr_db);
    std::string marks;
    const double alone = layer.alone->snr_db;
    if (layer.cumulative) {
      note += ", with all before it " + decibels(layer.cumulative->snr_db);
      marks += svg_line(chart.center(i), chart.y(alone), chart.center(i),
                        chart.y(layer.cumulative->snr_db), "grid");
      marks += chart.dot(i, layer.cumulative->snr_db, 2.2, "cumulative");
    }
    marks += chart.dot(i, alone, is_worst ? 4 : 2.6, is_worst ? "worst" : "alone");
    if (is_worst) {
      const double below = chart.y(alone) + 16;  // not on the axis
      marks += svg_label(chart.center(i), below < chart.y(scale.low) ? below : chart.y(alone) - 8, "middle",
                         std::to_string(rank + 1), "value");
    }
    if (!layer.cause.empty()) note += "\n" + layer.cause;
    chart.add(i, marks, note);
  }
  return "<div class=\"scroll\">" + chart.svg() + "</div>";
}

std::string bytes_plot(const Report& report) {
  const auto mib = [](std::int64_t bytes) -> std::optional<double> {
    return static_cast<double>(bytes) / (1 << 20);
  };
  return pair_plot(
      quantized_layers(report), "MiB",
      [&](const LayerEntry& layer) { return mib(layer.bytes_before); },
      [&](const LayerEntry& layer) { return mib(layer.bytes_after); }, "MiB");
}

std::string time_plot(const Report& report) {
  return pair_plot(
      quantized_layers(report), "ms a second of audio",
      [](const LayerEntry& layer) { return layer.ms_before; },
      [](const LayerEntry& layer) { return layer.ms_after; }, "ms");
}

}  // namespace oasr::quantize
