#include "layers/pack.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/conv1d/op.h"
#include "kernels/conv2d/op.h"

namespace oasr::layers {
namespace {

// Whether the format decodes at all, so that the row callback of the packing can not fail.
Status check_decodes(const StoredTensor& tensor, const std::string& name) {
  const StoredTensor row = row_range(tensor, 0, 1);
  std::vector<float> values(static_cast<std::size_t>(row.shape.elements()));
  if (auto status = decode_to_float(row, values); !status) {
    return unexpected(status.error().code, status.error().what, name, status.error().remedy);
  }
  return {};
}

// What the rows are kept in: 16 bits if all parts are.
DType storage_of(const StackedRows& rows, const WeightOptions& options) {
  const DType storage = storage_dtype(rows.tensors()[0].format, options);
  const bool mixed = std::ranges::any_of(rows.tensors(), [&](const StoredTensor& tensor) {
    return storage_dtype(tensor.format, options) != storage;
  });
  return mixed ? DType::f32 : storage;
}

StorageFormat format_of(DType dtype) {
  if (dtype == DType::f16) return StorageFormat::f16;
  return dtype == DType::bf16 ? StorageFormat::bf16 : StorageFormat::f32;
}

// Rows as the checkpoint has them: 16-bit floats bit by bit, everything else as float32.
TensorSource original(const Parameters& parameters, const std::string& name, const Shape& shape,
                      const StackedRows& rows) {
  const StorageFormat format = format_of(storage_of(rows, {}));
  return {.name = name,
          .format = format,
          .shape = shape,
          .row = [rows, format, consumed = parameters.on_consumed()](std::int64_t row,
                                                                      std::span<std::byte> out) {
            if (format == StorageFormat::f32) {
              rows.read(row, {reinterpret_cast<float*>(out.data()), out.size() / sizeof(float)});
            } else {
              const auto bytes = rows.stored(row).bytes;
              std::memcpy(out.data(), bytes.data(), bytes.size());
            }
            if (consumed) consumed(out.size());
          }};
}

// The matrix is packed.
void finish(const Parameters& parameters, const std::string& name, const Shape& shape, const StackedRows& rows,
            const WeightOptions& options) {
  if (options.originals != nullptr) options.originals->push_back(original(parameters, name, shape, rows));
  parameters.consumed(rows.bytes());
}

}  // namespace

Result<StackedRows> StackedRows::open(const Parameters& parameters,
                                      std::span<const std::string> names) {
  StackedRows stacked;
  for (const std::string& name : names) {
    const StoredTensor& tensor = parameters.get(name);
    TRY(check_decodes(tensor, name));
    stacked.rows_ += tensor.shape[0];
    stacked.bytes_ += tensor.bytes.size();
    stacked.tensors_.push_back(tensor);
  }
  return stacked;
}

StoredTensor StackedRows::stored(std::int64_t row) const {
  std::size_t part = 0;
  while (row >= tensors_[part].shape[0]) row -= tensors_[part++].shape[0];
  return row_range(tensors_[part], row, 1);
}

void StackedRows::read(std::int64_t row, std::span<float> out) const {
  const Status status = decode_to_float(stored(row), out);
  CHECK(status.has_value(), "a row of a checked tensor can not be decoded");
}

Result<kernels::PackedWeight> pack_stacked(const Parameters& parameters, const std::string& name,
                                           std::span<const std::string> parts,
                                           const WeightOptions& options) {
  const StackedRows rows = TRY(StackedRows::open(parameters, parts));
  auto packed = kernels::PackedWeight::pack(rows.rows(), rows.columns(), storage_of(rows, options),
                                            [&](std::int64_t n, std::span<float> out) { rows.read(n, out); });
  finish(parameters, name, {rows.rows(), rows.columns()}, rows, options);
  return packed;
}

Result<kernels::PackedWeight> pack_convolution(const Parameters& parameters,
                                               const std::string& name,
                                               const WeightOptions& options) {
  const StackedRows rows = TRY(StackedRows::open(parameters, {&name, 1}));
  const Shape& shape = parameters.get(name).shape;
  CHECK(shape.rank() == 3 && shape[2] == kernels::kConvTaps, "a weight [out, in, 3]");
  auto packed = kernels::pack_conv1d(shape[0], shape[1], storage_of(rows, options),
                                     [&](std::int64_t n, std::span<float> out) { rows.read(n, out); });
  finish(parameters, name, shape, rows, options);
  return packed;
}

Result<kernels::PackedWeight> pack_image_convolution(const Parameters& parameters,
                                                     const std::string& name,
                                                     const WeightOptions& options) {
  const StackedRows rows = TRY(StackedRows::open(parameters, {&name, 1}));
  const Shape& shape = parameters.get(name).shape;
  CHECK(shape.rank() == 4, "a weight [out, in, height, width]");
  auto packed = kernels::pack_conv2d(shape[0], shape[1], shape[2], shape[3], storage_of(rows, options),
                                     [&](std::int64_t n, std::span<float> out) { rows.read(n, out); });
  finish(parameters, name, shape, rows, options);
  return packed;
}

}  // namespace oasr::layers
