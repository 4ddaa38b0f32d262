#include "tensor/shape.h"

#include "base/check.h"

namespace oasr {

Shape::Shape(std::initializer_list<std::int64_t> extents) {
  const auto shape = checked({extents.begin(), extents.size()});
  CHECK(shape.has_value(), "an impossible shape");
  *this = *shape;
}

std::optional<Shape> Shape::checked(std::span<const std::int64_t> extents) {
  if (extents.size() > kMaxRank) return std::nullopt;
  Shape shape;
  std::int64_t product = 1;
  for (const auto extent : extents) {
    if (extent < 0 || __builtin_mul_overflow(product, extent, &product)) return std::nullopt;
    shape.extents_[shape.rank_++] = extent;
  }
  return shape;
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (const auto extent : extents()) product *= extent;
  return product;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (std::size_t i = 0; i < rank_; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(extents_[i]);
  }
  return text + "]";
}

}  // namespace oasr
