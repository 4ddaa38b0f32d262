// Writing safetensors files from tensors that are made row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "checkpoint/checksum.h"
#include "checkpoint/state_dict.h"

namespace oasr {

// One tensor to be written.
struct TensorSource {
  std::string name;
  StorageFormat format = StorageFormat::f32;
  Shape shape;
  // Fills `out` with the little-endian bytes of one slice of the first axis. Called once for each
  // row 0 … shape[0] - 1, in order; a tensor of rank 0 or 1 is one row. Not called for slices of
  // no bytes.
  std::function<void(std::int64_t row, std::span<std::byte> out)> row;
};

// Bytes of tensors written so far and in all, every few MiB. False stops the writing.
using WriteProgress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

// Writes a file that appears complete or not at all, and gives the checksum of each tensor
// (checksum.h). The same tensors give the same bytes, in whatever order: the data lies by
// descending element size, then by name, and begins at a multiple of 64 bytes, so that every tensor
// is aligned for its elements. Memory: one row and a buffer of 4 MiB.
// Errors: invalid_argument for names that the reader refuses or that repeat, unsupported for
// formats without a dtype of safetensors, io, cancelled.
Result<Checksums> write_safetensors(const std::filesystem::path& file,
                                    std::span<const TensorSource> tensors,
                                    const WriteProgress& progress = {});

}  // namespace oasr
