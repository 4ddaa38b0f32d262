#include "features/silero_vad.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "base/byte_reader.h"
#include "base/check.h"
#include "base/json.h"
#include "features/power_spectrum.h"

// The weights, put into the library by the assembler.
asm(".pushsection .rodata\n"
    ".balign 16\n"
    ".global oasr_silero_weights, oasr_silero_weights_end\n"
    ".hidden oasr_silero_weights, oasr_silero_weights_end\n"
    "oasr_silero_weights: .incbin \"" OASR_ASSETS_DIR
    "/silero/silero_vad_16k.safetensors\"\n"
    "oasr_silero_weights_end: .byte 0\n"
    ".popsection\n");
extern "C" {
[[gnu::visibility("hidden")]] extern const std::byte oasr_silero_weights[];
[[gnu::visibility("hidden")]] extern const std::byte oasr_silero_weights_end[];
}

namespace oasr {
namespace {

constexpr std::size_t kStep = kVadStep;
constexpr std::size_t kContext = 64;    // samples of the step before
constexpr std::size_t kReflected = 64;  // mirrored after the end
constexpr std::size_t kWindow = 256;    // of the spectrum
constexpr std::size_t kHop = 128;
constexpr std::size_t kFrames = 4;  // spectra of a step
constexpr std::size_t kBins = kWindow / 2 + 1;
constexpr std::size_t kUnits = 128;  // of the LSTM
static_assert(kFrames == kFrameLanes);

// The tensors of the embedded file.
class Weights {
 public:
  Weights() : reader_({oasr_silero_weights, oasr_silero_weights_end}, "the bundled Silero VAD") {
    const auto header_size = reader_.read<std::uint64_t>();
    CHECK(header_size, "part of the library");
    const auto text = reader_.take_string(*header_size);
    CHECK(text, "part of the library");
    auto header = parse_json(*text, "the bundled Silero VAD");
    CHECK(header, "part of the library");
    header_ = std::move(*header);
    data_ = reader_.offset();
  }

  std::vector<float> tensor(const std::string& name, std::size_t size) {
    const auto& entry = header_.at(name);
    const auto begin = entry.at("data_offsets").at(0).get<std::size_t>();
    CHECK(entry.at("dtype") == "F32" && reader_.seek(data_ + begin), "part of the library");
    const auto bytes = reader_.take(size * sizeof(float));
    CHECK(bytes && entry.at("data_offsets").at(1) == begin + bytes->size(), "part of the library");
    std::vector<float> values(size);
    std::memcpy(values.data(), bytes->data(), bytes->size());
    return values;
  }

 private:
  ByteReader reader_;
  Json header_;
  std::size_t data_ = 0;
};

// Parts of the functions that are compiled for wider vectors too.
#define OASR_PART [[gnu::always_inline]]

using EightLanes = float __attribute__((vector_size(32)));
using SixteenLanes = float __attribute__((vector_size(64)));

// The same where they lie in memory. (g++ 12 copies by memcpy in halves, which the next load waits for.)
template <class Lanes>
struct InMemory;
template <>
struct InMemory<FrameLanes> {
  using Vector = float __attribute__((vector_size(16), aligned(4), may_alias));
};
template <>
struct InMemory<EightLanes> {
  using Vector = float __attribute__((vector_size(32), aligned(4), may_alias));
};
template <>
struct InMemory<SixteenLanes> {
  using Vector = float __attribute__((vector_size(64), aligned(4), may_alias));
};

constexpr std::size_t kBatch = 8;  // steps whose convolutions are computed together
constexpr std::size_t kTogether = 256;  // steps that are in memory, 10 KiB each, at most

// Rows of a product: x of each and where its y goes, from which its sums start.
struct Rows {
  std::array<const float*, kBatch * kFrames> x;
  std::array<float*, kBatch * kFrames> y;
  std::size_t count = 0;

  OASR_PART void add(const float* from, float* to) {
    x[count] = from;
    y[count++] = to;
  }
};

// y += x W, W [inputs, outputs] with outputs a multiple of four vectors. Vectors run along the outputs and sums along
// the inputs, so the order of a sum is that of its definition, whatever the width of a vector and the rows beside it.
// A block of W serves all rows before the next one is read: it is larger than a cache. A convolution of three taps is such
// a product on rows of three neighbouring times.
struct Dense {
  std::size_t inputs = 0, outputs = 0;
  std::vector<float> weights, bias;

  // Weights [outputs, channels, taps] of the file.
  Dense(Weights& file, const std::string& name, std::size_t out, std::size_t channels,
        std::size_t taps)
      : inputs(channels * taps),
        outputs(out),
        weights(inputs * out),
        bias(file.tensor(name + ".bias", out)) {
    const auto stored = file.tensor(name + ".weight", weights.size());
    for (std::size_t o = 0; o < out; ++o) {
      for (std::size_t i = 0; i < inputs; ++i) {
        weights[(i % taps * channels + i / taps) * out + o] = stored[o * inputs + i];
      }
    }
  }
  Dense(std::size_t in, std::size_t out) : inputs(in), outputs(out), weights(in * out), bias(out) {}

  template <class Lanes>
  OASR_PART void apply(const Rows& rows) const {
    constexpr std::size_t kLanes = sizeof(Lanes) / sizeof(float);
    for (std::size_t o = 0; o < outputs; o += 4 * kLanes) {
      std::size_t row = 0;
      for (; row + 4 <= rows.count; row += 4) {
        block<Lanes, 4, 2>(rows, row, o);
        block<Lanes, 4, 2>(rows, row, o + 2 * kLanes);
      }
      for (; row < rows.count; ++row) block<Lanes, 1, 4>(rows, row, o);
    }
  }
  // From the bias.
  template <class Lanes>
  OASR_PART void apply_to_bias(const Rows& rows) const {
    for (std::size_t row = 0; row < rows.count; ++row) std::memcpy(rows.y[row], bias.data(), outputs * sizeof(float));
    apply<Lanes>(rows);
  }

  // The outputs of `Count` rows and `Vectors` vectors from `o` on.
  template <class Lanes, std::size_t Count, std::size_t Vectors>
  OASR_PART void block(const Rows& rows, std::size_t row, std::size_t o) const {
    using Vector = typename InMemory<Lanes>::Vector;
    Lanes sum[Count][Vectors];
    for (std::size_t r = 0; r < Count; ++r) {
      const auto* y = reinterpret_cast<const Vector*>(rows.y[row + r] + o);
      for (std::size_t v = 0; v < Vectors; ++v) sum[r][v] = y[v];
    }
    const float* w = &weights[o];
    for (std::size_t i = 0; i < inputs; ++i, w += outputs) {
      const auto* weight = reinterpret_cast<const Vector*>(w);
      for (std::size_t r = 0; r < Count; ++r) {
        const float x = rows.x[row + r][i];
        for (std::size_t v = 0; v < Vectors; ++v) sum[r][v] += weight[v] * x;
      }
    }
    for (std::size_t r = 0; r < Count; ++r) {
      auto* y = reinterpret_cast<Vector*>(rows.y[row + r] + o);
      for (std::size_t v = 0; v < Vectors; ++v) y[v] = sum[r][v];
    }
  }
};

OASR_PART inline void relu(float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = std::max(values[i], 0.0f);
}

// x becomes e to the power of x, x in [-87, 88] (x outside is taken for the nearer end): 2^n times a Taylor sum of seven powers of
// r, x = n ln 2 + r with |r| <= ln 2 / 2, whose rest is 6e-9; the roundings of the sum and of r are about 2^-23.
// Multiplications and additions only, so that the bits depend neither on the vector nor on a library.
// (In place: vectors are no results of functions without AVX.)
template <class Lanes>
OASR_PART inline void exponential(Lanes& x) {
  using Bits = decltype(x < x);  // integers of the same number and size
  constexpr float kRound = 0x1.8p23f;                                // + and - it rounds to an integer
  constexpr float kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;  // n kLn2High is exact
  x = x < -87.0f ? Lanes{} - 87.0f : x;
  x = x > 88.0f ? Lanes{} + 88.0f : x;
  const Lanes shifted = x * 0x1.715476p0f + kRound, n = shifted - kRound;
  const Lanes r = x - n * kLn2High - n * kLn2Low;
  Lanes sum = Lanes{} + 1.0f / 5040;
  for (const float factor : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) sum = sum * r + factor;
  const Bits power = ((Bits)shifted << 23) + 0x3f80'0000;  // 2^n; casts of vectors keep the bits
  x = sum * (Lanes)power;
}
template <class Lanes>
OASR_PART inline void sigmoid(Lanes& x) {
  x = -x;
  exponential(x);
  x = 1.0f / (1.0f + x);
}
template <class Lanes>
OASR_PART inline void hyperbolic_tangent(Lanes& x) {
  x += x;
  exponential(x);
  x = 1.0f - 2.0f / (1.0f + x);
}

// A matrix of the cell: of the input ("ih"), or of the hidden state ("hh"). Both biases go to the first.
Dense lstm_weights(Weights& file, const std::string& part) {
  constexpr std::size_t kGates = 4 * kUnits;
  Dense gates(kUnits, kGates);
  const auto weights = file.tensor("lstm_cell.weight_" + part, kGates * kUnits);
  for (std::size_t o = 0; o < kGates; ++o) {
    for (std::size_t i = 0; i < kUnits; ++i) gates.weights[i * kGates + o] = weights[o * kUnits + i];
  }
  return gates;
}

std::vector<float> lstm_bias(Weights& file) {
  std::vector<float> sum(4 * kUnits);
  for (const std::string part : {"ih", "hh"}) {
    const auto bias = file.tensor("lstm_cell.bias_" + part, sum.size());
    for (std::size_t o = 0; o < sum.size(); ++o) sum[o] += bias[o];
  }
  return sum;
}

}  // namespace

struct SileroVad::State {
  explicit State(int most_lanes) : State(Weights(), most_lanes) {}
  State(Weights file, int most_lanes)
      : conv1(file, "conv1", 128, kBins, 3),
        conv2(file, "conv2", 64, 128, 3),
        conv3(file, "conv3", 64, 64, 3),
        conv4(file, "conv4", 128, 64, 3),
        lstm_input(lstm_weights(file, "ih")),
        lstm_hidden(lstm_weights(file, "hh")),
        out_weights(file.tensor("final_conv.weight", kUnits)),
        out_bias(file.tensor("final_conv.bias", 1).front()) {
    lstm_input.bias = lstm_bias(file);
#if defined(__x86_64__)
    if (most_lanes >= 8 && __builtin_cpu_supports("avx2")) lanes = 8;
    if (most_lanes >= 16 && __builtin_cpu_supports("avx512f")) lanes = 16;
#endif
  }

  // Activations of a step by time and channel, with a row of zeros before and after: the padding.
  struct Activations {
    std::array<float, 6 * kBins> spectra{};
    std::array<float, 6 * 128> a1{};
    std::array<float, 4 * 64> a2{};
    std::array<float, 3 * 64> a3{};
    std::array<float, kUnits> a4{};
    std::array<float, 4 * kUnits> gates{};
  };

  struct Batch {
    std::array<Activations, kBatch> steps;
    PowerSpectrum spectrum{kWindow};
  };

  // The file's spectrum is a convolution with a Hann-windowed Fourier basis: a transform. `before`: the last samples
  // of the step before.
  static void magnitudes(const float* before, const float* samples, PowerSpectrum& spectrum, Activations& of) {
    std::array<float, kContext + kStep + kReflected> window;
    std::copy(before, before + kContext, window.begin());
    std::copy(samples, samples + kStep, window.begin() + kContext);
    constexpr std::size_t kLast = kContext + kStep - 1;
    for (std::size_t i = 1; i <= kReflected; ++i) window[kLast + i] = window[kLast - i];
    std::array<const float*, kFrames> frames;
    for (std::size_t t = 0; t < kFrames; ++t) frames[t] = &window[t * kHop];
    const auto power = spectrum.transform(frames);
    for (std::size_t k = 0; k < kBins; ++k) {
      for (std::size_t t = 0; t < kFrames; ++t)
        of.spectra[(t + 1) * kBins + k] = std::sqrt(power[k][t]);
    }
  }

  // The scores of up to kTogether steps: what depends on a step alone batch by batch, in any order, then what depends on
  // the step before.
  void steps(std::span<const float> samples, float* scores, const ForEach& each) {
    const std::size_t count = samples.size() / kStep, full = (count + kBatch - 1) / kBatch;
    if (batches.size() < full) batches.resize(full);
    each(full, [&](std::size_t b) {
      const std::size_t first = b * kBatch, size = std::min(kBatch, count - first);
      for (std::size_t i = 0; i < size; ++i) {
        const float* at = samples.data() + (first + i) * kStep;
        magnitudes(first + i == 0 ? context.data() : at - kContext, at, batches[b].spectrum, batches[b].steps[i]);
      }
      convolutions(batches[b], size);
    });
    for (std::size_t i = 0; i < count; ++i) scores[i] = recur(batches[i / kBatch].steps[i % kBatch].gates.data());
    std::copy(samples.end() - kContext, samples.end(), context.begin());
  }

  // The same bits for every kind of Lanes.
  void convolutions(Batch& batch, std::size_t count) const {
#if defined(__x86_64__)
    if (lanes == 16) return convolutions_avx512(batch, count);
    if (lanes == 8) return convolutions_avx2(batch, count);
#endif
    convolve<FrameLanes>(batch, count);
  }
  float recur(float* gates) {
#if defined(__x86_64__)
    if (lanes == 16) return recur_avx512(gates);
    if (lanes == 8) return recur_avx2(gates);
#endif
    return recur<FrameLanes>(gates);
  }

#if defined(__x86_64__)
  [[gnu::target("avx2")]] void convolutions_avx2(Batch& batch, std::size_t count) const {
    convolve<EightLanes>(batch, count);
  }
  [[gnu::target("avx512f")]] void convolutions_avx512(Batch& batch, std::size_t count) const {
    convolve<SixteenLanes>(batch, count);
  }
  [[gnu::target("avx2")]] float recur_avx2(float* gates) { return recur<EightLanes>(gates); }
  [[gnu::target("avx512f")]] float recur_avx512(float* gates) { return recur<SixteenLanes>(gates); }
#endif

  template <class Lanes>
  OASR_PART float recur(float* gates) {
    Rows row;
    row.add(hidden.data(), gates);
    lstm_hidden.apply<Lanes>(row);
    return cell_step<Lanes>(gates);
  }

  // From spectra to what the cell gets of the step itself.
  template <class Lanes>
  OASR_PART void convolve(Batch& batch, std::size_t count) const {
    Rows rows1, rows2, rows3, rows4, rows5;
    for (std::size_t i = 0; i < count; ++i) {
      Activations& step = batch.steps[i];
      for (std::size_t t = 0; t < 4; ++t) rows1.add(&step.spectra[t * kBins], &step.a1[(t + 1) * 128]);
      for (std::size_t t = 0; t < 2; ++t) rows2.add(&step.a1[2 * t * 128], &step.a2[(t + 1) * 64]);
      rows3.add(step.a2.data(), &step.a3[64]);
      rows4.add(step.a3.data(), step.a4.data());
      rows5.add(step.a4.data(), step.gates.data());
    }
    conv1.apply_to_bias<Lanes>(rows1);
    for (std::size_t i = 0; i < count; ++i) relu(&batch.steps[i].a1[128], 4 * 128);
    conv2.apply_to_bias<Lanes>(rows2);
    for (std::size_t i = 0; i < count; ++i) relu(&batch.steps[i].a2[64], 2 * 64);
    conv3.apply_to_bias<Lanes>(rows3);
    for (std::size_t i = 0; i < count; ++i) relu(&batch.steps[i].a3[64], 64);
    conv4.apply_to_bias<Lanes>(rows4);
    for (std::size_t i = 0; i < count; ++i) relu(batch.steps[i].a4.data(), kUnits);
    lstm_input.apply_to_bias<Lanes>(rows5);
  }

  template <class Lanes>
  OASR_PART float cell_step(const float* gates) {
    using Vector = typename InMemory<Lanes>::Vector;
    for (std::size_t i = 0; i < kUnits; i += sizeof(Lanes) / sizeof(float)) {
      auto& stored = reinterpret_cast<Vector&>(cell[i]);
      const auto* gate = reinterpret_cast<const Vector*>(gates + i);
      constexpr std::size_t kNext = kUnits * sizeof(float) / sizeof(Lanes);
      Lanes in = gate[0], forget = gate[kNext], candidate = gate[2 * kNext], out = gate[3 * kNext], memory = stored;
      sigmoid(in);
      sigmoid(forget);
      sigmoid(out);
      hyperbolic_tangent(candidate);
      memory = forget * memory + in * candidate;
      stored = memory;
      hyperbolic_tangent(memory);
      reinterpret_cast<Vector&>(hidden[i]) = out * memory;
    }
    float score = out_bias;
    for (std::size_t i = 0; i < kUnits; ++i) score += out_weights[i] * std::max(hidden[i], 0.0f);
    FrameLanes probability = FrameLanes{} + score;
    sigmoid(probability);
    return probability[0];
  }

  Dense conv1, conv2, conv3, conv4, lstm_input, lstm_hidden;
  std::vector<float> out_weights;
  float out_bias;
  std::vector<Batch> batches;
  int lanes = 4;
  std::array<float, kContext> context{};
  std::array<float, kUnits> hidden{}, cell{};
};

void in_turn(std::size_t items, const std::function<void(std::size_t)>& body) {
  for (std::size_t i = 0; i < items; ++i) body(i);
}

SileroVad::SileroVad(int most_lanes) : state_(std::make_unique<State>(most_lanes)) {}
SileroVad::~SileroVad() = default;
SileroVad::SileroVad(SileroVad&&) noexcept = default;
SileroVad& SileroVad::operator=(SileroVad&&) noexcept = default;

float SileroVad::step(std::span<const float, kVadStep> samples) {
  float score = 0;
  state_->steps(samples, &score, in_turn);
  return score;
}

void SileroVad::steps(std::span<const float> samples, std::vector<float>& probabilities, const ForEach& each) {
  CHECK(samples.size() % kStep == 0, "whole steps");
  while (!samples.empty()) {
    const auto part = samples.first(std::min(samples.size(), kTogether * kStep));
    const std::size_t base = probabilities.size();
    probabilities.resize(base + part.size() / kStep);
    state_->steps(part, &probabilities[base], each);
    samples = samples.subspan(part.size());
  }
}

int SileroVad::lanes() const { return state_->lanes; }

void SileroVad::reset() {
  state_->context.fill(0);
  state_->hidden.fill(0);
  state_->cell.fill(0);
}

bool holds_speech(std::span<const float> samples, float threshold) {
  SileroVad network;
  std::vector<float> part, probabilities;
  while (!samples.empty()) {
    const std::size_t size = std::min(kBatch * kStep, samples.size());
    part.assign(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(size));
    part.resize((size + kStep - 1) / kStep * kStep);
    probabilities.clear();
    network.steps(part, probabilities);
    if (std::ranges::any_of(probabilities, [&](float p) { return p >= threshold; })) return true;
    samples = samples.subspan(size);
  }
  return false;
}

}  // namespace oasr
