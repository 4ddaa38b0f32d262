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

// Parts of the functions that are compiled for AVX2 too.
#define OASR_PART [[gnu::always_inline]]

using EightLanes = float __attribute__((vector_size(32)));

// y = bias + x W for `Rows` rows at a time, W [inputs, outputs] with outputs a multiple of eight vectors /
// Rows. Vectors run along the outputs and sums along the inputs, so the order of a sum is that of
// its definition, whatever the width of a vector. A convolution of three taps is such a product on rows of three neighbouring
// times.
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

  template <class Lanes, std::size_t Rows>
  OASR_PART void apply(const float* x, std::size_t x_stride, float* y, std::size_t y_stride) const {
    constexpr std::size_t kLanes = sizeof(Lanes) / sizeof(float);
    constexpr std::size_t kVectors = 8 / Rows;  // of a block: what fits the registers
    for (std::size_t o = 0; o < outputs; o += kVectors * kLanes) {
      Lanes sum[Rows][kVectors];
      for (std::size_t r = 0; r < Rows; ++r) std::memcpy(sum[r], &bias[o], sizeof(sum[r]));
      const float* w = &weights[o];
      for (std::size_t i = 0; i < inputs; ++i, w += outputs) {
        Lanes weight[kVectors];
        std::memcpy(weight, w, sizeof(weight));
        for (std::size_t v = 0; v < kVectors; ++v) {
          for (std::size_t r = 0; r < Rows; ++r) sum[r][v] += weight[v] * x[r * x_stride + i];
        }
      }
      for (std::size_t r = 0; r < Rows; ++r)
        std::memcpy(y + r * y_stride + o, sum[r], sizeof(sum[r]));
    }
  }
};

void relu(std::span<float> values) {
  for (float& v : values) v = std::max(v, 0.0f);
}

float sigmoid(float v) { return 1.0f / (1.0f + std::exp(-v)); }

// Both matrices of the cell side by side, as one product with (input, hidden state).
Dense lstm_weights(Weights& file) {
  constexpr std::size_t kGates = 4 * kUnits;
  Dense gates(2 * kUnits, kGates);
  std::size_t first_input = 0;
  for (const std::string& part : {std::string("ih"), std::string("hh")}) {
    const auto weights = file.tensor("lstm_cell.weight_" + part, kGates * kUnits);
    const auto bias = file.tensor("lstm_cell.bias_" + part, kGates);
    for (std::size_t o = 0; o < kGates; ++o) {
      gates.bias[o] += bias[o];
      for (std::size_t i = 0; i < kUnits; ++i)
        gates.weights[(first_input + i) * kGates + o] = weights[o * kUnits + i];
    }
    first_input += kUnits;
  }
  return gates;
}

}  // namespace

struct SileroVad::State {
  State() : State(Weights()) {}
  explicit State(Weights file)
      : conv1(file, "conv1", 128, kBins, 3),
        conv2(file, "conv2", 64, 128, 3),
        conv3(file, "conv3", 64, 64, 3),
        conv4(file, "conv4", 128, 64, 3),
        lstm(lstm_weights(file)),
        out_weights(file.tensor("final_conv.weight", kUnits)),
        out_bias(file.tensor("final_conv.bias", 1).front()) {}

  // The file's spectrum is a convolution with a Hann-windowed Fourier basis: a transform.
  void magnitudes(std::span<const float, kStep> samples) {
    std::array<float, kContext + kStep + kReflected> window;
    std::copy(context.begin(), context.end(), window.begin());
    std::copy(samples.begin(), samples.end(), window.begin() + kContext);
    constexpr std::size_t kLast = kContext + kStep - 1;
    for (std::size_t i = 1; i <= kReflected; ++i) window[kLast + i] = window[kLast - i];
    std::copy(samples.end() - kContext, samples.end(), context.begin());
    std::array<const float*, kFrames> frames;
    for (std::size_t t = 0; t < kFrames; ++t) frames[t] = &window[t * kHop];
    const auto power = spectrum.transform(frames);
    for (std::size_t k = 0; k < kBins; ++k) {
      for (std::size_t t = 0; t < kFrames; ++t)
        spectra[(t + 1) * kBins + k] = std::sqrt(power[k][t]);
    }
  }

  float step(std::span<const float, kStep> samples) {
    magnitudes(samples);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) return score_avx2();
#endif
    return score<FrameLanes>();
  }

#if defined(__x86_64__)
  [[gnu::target("avx2")]] float score_avx2() { return score<EightLanes>(); }
#endif

  // Of the spectra; the same bits for every kind of Lanes.
  template <class Lanes>
  OASR_PART float score() {
    conv1.apply<Lanes, 4>(spectra.data(), kBins, &a1[128], 128);
    relu(std::span(a1).subspan(128, 4 * 128));
    conv2.apply<Lanes, 2>(a1.data(), 2 * 128, &a2[64], 64);
    relu(std::span(a2).subspan(64, 2 * 64));
    conv3.apply<Lanes, 1>(a2.data(), 0, &a3[64], 0);
    relu(std::span(a3).subspan(64, 64));
    conv4.apply<Lanes, 1>(a3.data(), 0, lstm_input.data(), 0);
    relu(std::span(lstm_input).first(kUnits));
    lstm.apply<Lanes, 1>(lstm_input.data(), 0, gates.data(), 0);
    float score = out_bias;
    for (std::size_t i = 0; i < kUnits; ++i) {
      const float in = sigmoid(gates[i]), forget = sigmoid(gates[kUnits + i]);
      const float candidate = std::tanh(gates[2 * kUnits + i]),
                  out = sigmoid(gates[3 * kUnits + i]);
      cell[i] = forget * cell[i] + in * candidate;
      lstm_input[kUnits + i] = out * std::tanh(cell[i]);
      score += out_weights[i] * std::max(lstm_input[kUnits + i], 0.0f);
    }
    return sigmoid(score);
  }

  Dense conv1, conv2, conv3, conv4, lstm;
  std::vector<float> out_weights;
  float out_bias;
  PowerSpectrum spectrum{kWindow};

  // Activations by time and channel, with a row of zeros before and after: the padding.
  std::array<float, 6 * kBins> spectra{};
  std::array<float, 6 * 128> a1{};
  std::array<float, 4 * 64> a2{};
  std::array<float, 3 * 64> a3{};
  std::array<float, 4 * kUnits> gates{};

  std::array<float, kContext> context{};
  std::array<float, 2 * kUnits> lstm_input{};  // of the convolutions, and the hidden state
  std::array<float, kUnits> cell{};
};

SileroVad::SileroVad() : state_(std::make_unique<State>()) {}
SileroVad::~SileroVad() = default;
SileroVad::SileroVad(SileroVad&&) noexcept = default;
SileroVad& SileroVad::operator=(SileroVad&&) noexcept = default;

float SileroVad::step(std::span<const float, kVadStep> samples) { return state_->step(samples); }

void SileroVad::reset() {
  state_->context.fill(0);
  state_->lstm_input.fill(0);
  state_->cell.fill(0);
}

bool holds_speech(std::span<const float> samples, float threshold) {
  SileroVad network;
  std::array<float, kStep> step;
  while (!samples.empty()) {
    const auto part = samples.first(std::min(kStep, samples.size()));
    std::fill(std::copy(part.begin(), part.end(), step.begin()), step.end(), 0.0f);
    if (network.step(step) >= threshold) return true;
    samples = samples.subspan(part.size());
  }
  return false;
}

}  // namespace oasr
