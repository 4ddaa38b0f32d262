// A float32 matrix in memory that someone else owns: rows with a stride.
#pragma once

#include <cstdint>

#include "base/check.h"

namespace oasr {

// [rows, columns], row r starts at data + r · stride. Rows may overlap (a convolution's input).
template <class T>
struct BasicMatrix {
  T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;

  T* row(std::int64_t r) const { return data + r * stride; }

  BasicMatrix row_range(std::int64_t first, std::int64_t count) const {
    CHECK(first >= 0 && count >= 0 && first + count <= rows, "rows outside the matrix");
    return {row(first), count, columns, stride};
  }
  BasicMatrix column_range(std::int64_t first, std::int64_t count) const {
    CHECK(first >= 0 && count >= 0 && first + count <= columns, "columns outside the matrix");
    return {data + first, rows, count, stride};
  }

  operator BasicMatrix<const T>() const { return {data, rows, columns, stride}; }  // NOLINT: as T* to const T*
};

using Matrix = BasicMatrix<float>;
using ConstMatrix = BasicMatrix<const float>;

}  // namespace oasr
