// Tensor owns contiguous row-major elements on the host; TensorView borrows them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/check.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace oasr {

// The DType of a C++ element type; specialised for the types below.
template <class T>
inline constexpr bool kIsElement = false;
template <class T>
inline constexpr DType kDTypeOf = DType::f32;

#define OASR_ELEMENT(type, dtype)               \
  template <>                                   \
  inline constexpr bool kIsElement<type> = true; \
  template <>                                   \
  inline constexpr DType kDTypeOf<type> = DType::dtype;
OASR_ELEMENT(double, f64)
OASR_ELEMENT(float, f32)
OASR_ELEMENT(Half, f16)
OASR_ELEMENT(BFloat16, bf16)
OASR_ELEMENT(std::int64_t, i64)
OASR_ELEMENT(std::int32_t, i32)
OASR_ELEMENT(std::int16_t, i16)
OASR_ELEMENT(std::int8_t, i8)
OASR_ELEMENT(std::uint64_t, u64)
OASR_ELEMENT(std::uint32_t, u32)
OASR_ELEMENT(std::uint16_t, u16)
OASR_ELEMENT(std::uint8_t, u8)
#undef OASR_ELEMENT

// Memory aligned to a cache line (64 bytes), uninitialised.
class AlignedBuffer {
 public:
  static constexpr std::size_t kAlignment = 64;

  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t bytes);

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

struct TensorView {
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes;  // elements() · dtype_size(dtype), aligned for the element

  template <class T>
  std::span<const T> as() const {
    static_assert(kIsElement<T>);
    CHECK(dtype == kDTypeOf<T>, "the tensor has another element type");
    return {reinterpret_cast<const T*>(bytes.data()), static_cast<std::size_t>(shape.elements())};
  }
};

class Tensor {
 public:
  Tensor() = default;
  // Uninitialised elements.
  Tensor(DType dtype, Shape shape);
  static Tensor zeros(DType dtype, Shape shape);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  TensorView view() const { return {dtype_, shape_, {buffer_.data(), buffer_.size()}}; }

  template <class T>
  std::span<T> as() {
    static_assert(kIsElement<T>);
    CHECK(dtype_ == kDTypeOf<T>, "the tensor has another element type");
    return {reinterpret_cast<T*>(buffer_.data()), static_cast<std::size_t>(shape_.elements())};
  }
  template <class T>
  std::span<const T> as() const {
    return view().as<T>();
  }

 private:
  DType dtype_ = DType::f32;
  Shape shape_{0};
  AlignedBuffer buffer_;
};

}  // namespace oasr
