// Watches a model while it decodes, and keeps what the inputs of its layers look like, and its keys.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calib/input_statistics.h"
#include "device/run_observer.h"

namespace oasr::calib {

// A layer to be watched.
struct WatchedLayer {
  std::string path = {};
  std::int64_t channels = 0;        // of its input
  bool channel_histograms = false;  // a static input scale may be asked of it, and its input be smoothed
  // Also what it sees of padding, apart, under padding_of(path): a static range has to hold that when the model
  // is served, though it must not steer anything else.
  bool padding = false;
  // Not its input: `channels` of its output from `first_channel` on, under output_of(path), without its
  // padding.
  bool output = false;
  std::int64_t first_channel = 0;
};

// The key of the statistics of a layer's padding.
inline std::string padding_of(std::string_view path) { return std::string(path) + " (padding)"; }

// The key of the statistics of a layer's output.
inline std::string output_of(std::string_view path) { return std::string(path) + " (output)"; }

// Give it to the model's state as ExecContext::observer. Rows of padding (audio_rows()) are left out, or kept apart.
class Collector final : public RunObserver {
 public:
  // The pool is the one that the model runs on. Samples of rows are drawn with a seed of their own for
  // each layer, made from `seed` and its path.
  Collector(ThreadPool& pool, const std::vector<WatchedLayer>& layers, std::uint64_t seed,
            std::int64_t sample_rows = 256);

  void not_finite(std::string_view layer, std::int64_t row) override;
  bool wants_inputs() const override { return true; }
  void layer_input(std::string_view layer, ConstMatrix x) override;
  bool wants_outputs() const override { return !first_channels_.empty(); }
  void layer_output(std::string_view layer, ConstMatrix y) override;
  void audio_rows(std::int64_t rows) override;

  const Statistics& statistics() const { return statistics_; }
  Statistics take() { return std::move(statistics_); }
  // The first layer that met a number that is not finite; an error then.
  Status status() const;

 private:
  // `rows` of what has the statistics `found`, without those of padding, or with them apart.
  void add(std::string_view layer, Statistics::iterator found, ConstMatrix rows);

  ThreadPool& pool_;
  Statistics statistics_;
  std::map<std::string, std::int64_t, std::less<>> first_channels_;  // of watched outputs, by path
  std::int64_t audio_rows_ = -1;
  std::map<std::string, std::int64_t, std::less<>> seen_;  // rows since audio_rows(), of each layer
  std::optional<std::string> bad_layer_;
};

}  // namespace oasr::calib
