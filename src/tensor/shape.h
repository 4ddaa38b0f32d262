// Shape of a tensor: up to eight extents, row-major.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

namespace oasr {

class Shape {
 public:
  static constexpr std::size_t kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);

  // Nothing if the rank is over kMaxRank, an extent is negative, or the product overflows int64.
  static std::optional<Shape> checked(std::span<const std::int64_t> extents);

  std::size_t rank() const { return rank_; }
  std::int64_t operator[](std::size_t axis) const { return extents_[axis]; }
  std::int64_t elements() const;
  std::span<const std::int64_t> extents() const { return {extents_.data(), rank_}; }

  // "[512, 80, 3]"
  std::string to_string() const;

  friend bool operator==(const Shape& a, const Shape& b) = default;

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  std::size_t rank_ = 0;
};

}  // namespace oasr
