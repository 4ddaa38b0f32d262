// How the numbers of a linear layer are stored and multiplied: one object a layer, chosen once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quant/methods/tensor_sources.h"
#include "device/memory.h"
#include "device/thread_pool.h"
#include "kernels/linear/op.h"
#include "quant/activation.h"

namespace oasr::quant {

// A calibrated input scale, and what a step that quantizes at it multiplies by.
struct StaticInput {
  Floats multiplier;  // [K], kernels::static_multiplier()
  Floats scale;       // [1]

  void place(Gpu& gpu) {
    multiplier.place(gpu);
    scale.place(gpu);
  }
};

// The int8 input that a layer can take from a producer.
enum class InputForm : std::uint8_t {
  floats,          // none: it takes floats only
  int8_per_token,  // rows with a scale each
  int8_static,     // rows at its StaticInput
};

// Facts for reports.
struct MethodInfo {
  std::string scheme;        // "int8_w8a8"; empty: full precision
  std::string storage;       // "float16", "int8", "int4 g128"
  std::string zero_domain = {};  // of weights with zeros: "post_scaled"
  std::string kernel;        // "linear avx512", "scaled_mm avx512_vnni"
  std::string operands;      // that it multiplies: "float32", "int8"
  bool reference = false;    // the kernel is the definition's plain loops: not "quantized" to a user
  std::int64_t bytes = 0;    // resident; of 4-bit weights as they are stored
  std::int64_t taps = 1;     // inputs that an output sums over, channels aside: 9 of a 3x3 convolution
};

// What a product is added to: y = alpha · value + rows. Empty rows: y = value.
struct Residual {
  Residual() = default;
  Residual(ConstMatrix rows, float alpha = 1.0f) : rows(rows), alpha(alpha) {}  // NOLINT: a plain sum
  Residual(Matrix rows, float alpha = 1.0f) : rows(rows), alpha(alpha) {}       // NOLINT

  ConstMatrix rows;
  float alpha = 1.0f;
};

// Immutable once it is where it runs; shared by sessions. No allocation in forward after reserve().
class LinearMethod {
 public:
  virtual ~LinearMethod() = default;
  // Moves the numbers to a GPU, where the layer then runs. For methods whose row of the table says so.
  virtual void place(Gpu& gpu) = 0;
  virtual MethodInfo info(Isa isa) const = 0;
  virtual std::int64_t in_features() const = 0;
  virtual std::int64_t out_features() const = 0;

  // Sizes the scratch memory of a session's threads.
  virtual void reserve(ExecContext& context) const = 0;

  // y = act(x Wᵀ + b) + residual: x [M, K], rows of the residual [M, N] (may be y itself), y [M, N]. A row
  // of y depends on the same row of x and residual only. Returns the lowest row of x that was not
  // finite where the method looks (full precision hands NaN on and returns nothing).
  virtual kernels::NotFinite forward(ExecContext& context, const Activation& x,
                                     const Residual& residual, Matrix y) const = 0;

  // What a producer may write for it.
  virtual InputForm input_form() const { return InputForm::floats; }
  virtual const StaticInput* static_input() const { return nullptr; }
  // Whether forward_into() is served.
  virtual bool emits_int8() const { return false; }
  // Bit-identical to forward() without a residual and the consumer's own static quantization.
  virtual kernels::NotFinite forward_into(ExecContext& context, const Activation& x,
                                          const StaticInput& consumer, Activation& y) const;

  // The tensors of the layer's state dict, which must not outlive the method.
  virtual std::vector<TensorSource> state(const std::string& path) const = 0;
};

// What a method is made from: rows of float32 that are decoded one at a time.
struct LinearSource {
  std::int64_t n = 0, k = 0;
  kernels::PackedWeight::RowSource rows;  // fills row n, K floats
  std::vector<float> bias = {};  // [N] or empty
  kernels::Activation activation = kernels::Activation::none;
};

}  // namespace oasr::quant
