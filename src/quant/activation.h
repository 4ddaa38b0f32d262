// What one layer hands to the next.
#pragma once

#include <cstdint>

#include "kernels/quantize/op.h"
#include "tensor/matrix.h"

namespace oasr::quant {

// Int8 rows and their scales, as a producer has left them.
struct Int8Rows {
  std::int8_t* q = nullptr;  // row stride ldq
  std::int64_t ldq = 0;
  float* scale = nullptr;    // one a row, or one
};

// Rows on their way from a layer to its consumers, in float memory that someone else owns. A producer
// that is linked to int8 consumers leaves int8 rows with their scales there, others float32 rows.
// Code between the two may read the shape; the rest is for layers and methods (ActivationAccess).
class Activation {
 public:
  // Float rows that are there, or room for rows: contiguous where a producer may write int8.
  Activation(Matrix memory) : memory_(memory) {}  // NOLINT: layers take matrices as they are
  // Float rows to read.
  Activation(ConstMatrix values)  // NOLINT
      : memory_{const_cast<float*>(values.data), values.rows, values.columns, values.stride},
        read_only_(true) {}

  std::int64_t rows() const { return memory_.rows; }
  std::int64_t columns() const { return memory_.columns; }

 private:
  friend class ActivationAccess;
  enum class Form : std::uint8_t { floats, int8_per_token, int8_static };

  Matrix memory_;
  bool read_only_ = false;
  Form form_ = Form::floats;
  const float* static_scale_ = nullptr;
};

// The producers' and consumers' side.
class ActivationAccess {
 public:
  static bool is_int8(const Activation& a) { return a.form_ != Activation::Form::floats; }
  static bool is_static(const Activation& a) { return a.form_ == Activation::Form::int8_static; }

  // The rows of a producer that hands on floats.
  static Matrix floats_out(Activation& a) {
    CHECK(!a.read_only_, "rows to read are written");
    a.form_ = Activation::Form::floats;
    return a.memory_;
  }
  // The rows of a producer that hands on int8 with a scale a row, in the same memory.
  static Int8Rows per_token_out(Activation& a) {
    const Int8Rows rows = int8_out(a);
    a.form_ = Activation::Form::int8_per_token;
    return rows;
  }
  // The same at a consumer's static input scale, [1], which must outlive the activation.
  static Int8Rows static_out(Activation& a, const float* input_scale) {
    const Int8Rows rows = int8_out(a);
    a.form_ = Activation::Form::int8_static;
    a.static_scale_ = input_scale;
    return rows;
  }

  static ConstMatrix floats(const Activation& a) {
    CHECK(!is_int8(a), "int8 rows are read as floats: a link feeds a layer that is not quantized");
    return a.memory_;
  }
  static const std::int8_t* q(const Activation& a) {
    return reinterpret_cast<const std::int8_t*>(a.memory_.data);
  }
  static kernels::ActivationScale scale(const Activation& a) {
    if (is_static(a)) return kernels::ActivationScale::per_tensor(a.static_scale_);
    return kernels::ActivationScale::per_token(scales(a));
  }

 private:
  // Rows of `columns` bytes, then the scales: room for both is in the floats' memory.
  static Int8Rows int8_out(Activation& a) {
    CHECK(!a.read_only_ && a.memory_.stride == a.memory_.columns && a.columns() % 4 == 0,
          "int8 rows need contiguous room of their own");
    return {reinterpret_cast<std::int8_t*>(a.memory_.data), a.columns(), scales(a)};
  }
  static float* scales(const Activation& a) {
    auto* q = reinterpret_cast<std::int8_t*>(a.memory_.data);
    return reinterpret_cast<float*>(q + a.rows() * a.columns());
  }
};

}  // namespace oasr::quant
