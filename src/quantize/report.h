// What `oasr quantize` did to every layer, and how it was judged: the value behind
// quantization_report.json and quantization_report.html.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "quantize/gate.h"

namespace oasr::quantize {

// One observer's choice for a layer's input: the greatest value that int8 keeps, the share of the
// values beyond it, and the expected squared error over the expected square.
struct RangeChoice {
  std::string observer;  // "mse"
  float amax = 0;
  double clipped = 0;         // share, 0 to 1
  double relative_error = 0;  // E[(x − Q(x))²] / E[x²]
};

// How an input is smoothed: X / s, W · s, s a power of two.
struct SmoothingReport {
  std::string fold;               // "norm_affine", "v_to_o", "producer_rows", "runtime"
  std::string producer;           // path; empty: runtime
  double alpha = 0;               // as chosen for the group
  float least = 1, greatest = 1;  // s
  std::int64_t moved = 0;         // channels with s != 1
  std::int64_t idle = 0;          // never seen active: s = 1
  std::int64_t clamped = 0;       // channels that the float16 guard held back
  // Squared error of the layer's output over its square, on kept rows: without and with.
  double error_before = 0, error_after = 0;
};

// How the keys of attention are scaled: k / λ, λ q.
struct KeyReport {
  std::string key, query;  // paths
  std::string pairing;     // of rotary positions: "none", "split_half", "interleaved"
  double alpha = 0;
  float least = 1, greatest = 1;  // λ
  std::int64_t moved = 0;         // channels with λ != 1
  std::int64_t idle = 0;          // never other than 0: λ = 1
  std::int64_t clamped = 0;       // channels that the float16 guard held back
};

// The output of a quantized layer beside that of full precision.
struct ErrorReport {
  double snr_db = 0;  // infinite without any error
  double cosine = 0;
};

struct LayerEntry {
  std::string path, kind;  // "linear"
  std::string scheme;      // "int8_w8a8"; empty: full precision
  std::string reason;      // why it is at full precision although its kind was selected
  std::int64_t in_features = 0, out_features = 0, taps = 1;
  std::int64_t bytes_before = 0, bytes_after = 0;  // of the weights
  // The calibrated input; none when nothing was calibrated.
  std::int64_t rows = 0;  // seen
  float input_min = 0, input_max = 0;
  std::vector<float> channel_amax;           // [K], as it came
  std::vector<float> channel_amax_smoothed;  // [K], after X / s; empty: not smoothed
  std::vector<RangeChoice> ranges;           // every observer's, for static inputs
  std::optional<float> input_scale;          // static inputs
  std::string observer;                      // that chose it
  float weight_scale_min = 0, weight_scale_max = 0;
  std::optional<SmoothingReport> smoothing;
  // On kept rows of calibration audio: this layer alone quantized; and with everything before it.
  std::optional<ErrorReport> alone, cumulative;
  // Mean Kullback-Leibler divergence of the model's output distributions, this layer alone
  // quantized.
  std::optional<double> effect;
  std::string cause;  // of a large error, in words: "channel 17 is 85 x the median channel"
  // Wall milliseconds a second of audio, before and after; nothing when they were not measured.
  // Never in the JSON report: it is the same bytes every time.
  std::optional<double> ms_before, ms_after;
};

struct CalibrationReport {
  std::string manifest;       // as given
  std::string manifest_hash;  // of the selected rows and their audio
  std::string selection;      // the rule, in words
  std::int64_t utterances = 0, available = 0, asked = 0;
  double seconds = 0;  // of audio
  std::vector<std::string> ids;
  std::vector<std::string> notes;
};

// The smoothed full-precision model beside the original on calibration audio.
struct FoldProof {
  std::int64_t utterances = 0, values = 0;  // compared
  double greatest_difference = 0;           // of log-probabilities; 0: the same bits
};

struct Report {
  std::string source, destination, architecture;
  std::string tool;                            // "oasr 0.1.0"
  std::string recipe;                          // "smoothquant_w8a8"
  std::map<std::string, std::string> options;  // of the algorithms and the selection, as used
  std::vector<std::string> ignore, module_types;
  std::string calib_dtype = "float32";             // of the copy that was calibrated
  std::vector<LayerEntry> layers;                  // in the order of the model
  std::int64_t bytes_before = 0, bytes_after = 0;  // all weights
  std::int64_t quantize_passes = 0;  // inputs that are quantized in a pass of their own
  std::int64_t fused_inputs = 0;     // inputs that a norm or a product writes as int8
  std::optional<CalibrationReport> calibration;
  std::vector<KeyReport> keys;  // of all smoothed attention, in the order of the layout
  std::optional<FoldProof> proof;
  // Nats: how far the quantized model's output distributions are from those of full precision, on calibration
  // audio (calib::divergence).
  std::optional<double> divergence;
  std::optional<GateReport> gate;
  std::string unmet;  // why no mix of precisions meets the budget; empty: one does, or none was asked for
  std::vector<std::string> notes;
};

// Every value but times, the same bytes for the same report. Numbers have the fewest digits that
// read back as they are; infinite ones are null.
OrderedJson to_json(const Report& report);
// A summary of some 20 lines of 100 columns for the terminal: what became of the layers, the worst
// of them, the gate.
std::string to_text(const Report& report);
// The layers by their error, worst first, with the cause, for --analyze.
std::string analysis_text(const Report& report);
// One page that needs no other file, with plots; without scripts.
std::string to_html(const Report& report);

}  // namespace oasr::quantize
