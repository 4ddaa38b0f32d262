#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/linear/op.h"

namespace oasr::kernels {
namespace {

template <class T>
T narrow(float value) {
  if constexpr (std::is_same_v<T, Half>) return to_half(value);
  if constexpr (std::is_same_v<T, BFloat16>) return to_bfloat16(value);
  if constexpr (std::is_same_v<T, float>) return value;
}

float widen(float value) { return value; }
float widen(Half value) { return to_float(value); }
float widen(BFloat16 value) { return to_float(value); }

// Calls f with a value of the storage's C++ type.
template <class F>
void with_storage(DType storage, F f) {
  if (storage == DType::f32) return f(float{});
  if (storage == DType::f16) return f(Half{});
  if (storage == DType::bf16) return f(BFloat16{});
  CHECK(false, "packed weights are float32, float16 or bfloat16");
}

}  // namespace

PackedWeight PackedWeight::pack(std::int64_t n, std::int64_t k, DType storage, const RowSource& rows) {
  CHECK(n > 0 && k > 0, "an empty weight");
  PackedWeight weight;
  weight.n_ = n;
  weight.k_ = k;
  weight.storage_ = storage;
  const std::int64_t panels = (n + kPanel - 1) / kPanel;
  weight.data_ = Memory(nullptr, static_cast<std::size_t>(panels * k * kPanel) * dtype_size(storage));
  std::vector<float> panel(static_cast<std::size_t>(k * kPanel));  // [kPanel][k]
  with_storage(storage, [&](auto type) {
    using T = decltype(type);
    auto* out = reinterpret_cast<T*>(weight.data_.data());
    for (std::int64_t first = 0; first < n; first += kPanel) {
      for (std::int64_t j = 0; j < kPanel; ++j) {
        const auto row = std::span(panel).subspan(static_cast<std::size_t>(j * k), static_cast<std::size_t>(k));
        if (first + j < n) {
          rows(first + j, row);
        } else {
          std::memset(row.data(), 0, row.size_bytes());
        }
      }
      for (std::int64_t i = 0; i < k; ++i) {
        for (std::int64_t j = 0; j < kPanel; ++j) {
          *out++ = narrow<T>(panel[static_cast<std::size_t>(j * k + i)]);
        }
      }
    }
  });
  return weight;
}

void PackedWeight::place(Gpu& gpu) {
  CHECK(!placed_, "a weight is placed once");
  Memory memory(&gpu, data_.size());
  gpu.upload(memory.data(), data_.data(), data_.size());
  data_ = std::move(memory);
  placed_ = true;
}

void PackedWeight::unpack_row(std::int64_t n, std::span<float> out) const {
  CHECK(!placed_, "the rows of a weight on a GPU are read by its kernels");
  CHECK(n >= 0 && n < n_ && out.size() == static_cast<std::size_t>(k_), "a row outside the weight");
  with_storage(storage_, [&](auto type) {
    const auto* from = reinterpret_cast<const decltype(type)*>(data_.data()) + (n / kPanel) * k_ * kPanel + n % kPanel;
    for (std::int64_t i = 0; i < k_; ++i) out[static_cast<std::size_t>(i)] = widen(from[i * kPanel]);
  });
}

}  // namespace oasr::kernels
