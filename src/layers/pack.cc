#include "layers/pack.h"

#include "base/check.h"
#include "kernels/conv1d/op.h"
#include "kernels/conv2d/op.h"

namespace oasr::layers {
namespace {

void read_row(const StoredTensor& tensor, std::int64_t row, std::span<float> out) {
  const Status status = decode_to_float(row_range(tensor, row, 1), out);
  CHECK(status.has_value(), "a row of a checked tensor can not be decoded");
}

// Whether the format decodes at all, so that the row callback of the packing can not fail.
Status check_decodes(const StoredTensor& tensor, const std::string& name) {
  const StoredTensor row = row_range(tensor, 0, 1);
  std::vector<float> values(static_cast<std::size_t>(row.shape.elements()));
  if (auto status = decode_to_float(row, values); !status) {
    return unexpected(status.error().code, status.error().what, name, status.error().remedy);
  }
  return {};
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

void StackedRows::read(std::int64_t row, std::span<float> out) const {
  std::size_t part = 0;
  while (row >= tensors_[part].shape[0]) row -= tensors_[part++].shape[0];
  read_row(tensors_[part], row, out);
}

Result<kernels::PackedWeight> pack_stacked(const Parameters& parameters,
                                           std::span<const std::string> names,
                                           const WeightOptions& options) {
  const StackedRows rows = TRY(StackedRows::open(parameters, names));
  DType storage = storage_dtype(rows.tensors()[0].format, options);
  for (const StoredTensor& tensor : rows.tensors()) {
    if (storage_dtype(tensor.format, options) != storage) storage = DType::f32;
  }
  auto packed = kernels::PackedWeight::pack(
      rows.rows(), rows.columns(), storage,
      [&](std::int64_t n, std::span<float> out) { rows.read(n, out); });
  parameters.consumed(rows.bytes());
  return packed;
}

Result<kernels::PackedWeight> pack_convolution(const Parameters& parameters,
                                               const std::string& name,
                                               const WeightOptions& options) {
  const StoredTensor& tensor = parameters.get(name);
  TRY(check_decodes(tensor, name));
  CHECK(tensor.shape.rank() == 3 && tensor.shape[2] == kernels::kConvTaps, "a weight [out, in, 3]");
  auto packed = kernels::pack_conv1d(
      tensor.shape[0], tensor.shape[1], storage_dtype(tensor.format, options),
      [&](std::int64_t n, std::span<float> out) { read_row(tensor, n, out); });
  parameters.consumed(tensor.bytes.size());
  return packed;
}

Result<kernels::PackedWeight> pack_image_convolution(const Parameters& parameters,
                                                     const std::string& name,
                                                     const WeightOptions& options) {
  const StoredTensor& tensor = parameters.get(name);
  TRY(check_decodes(tensor, name));
  CHECK(tensor.shape.rank() == 4, "a weight [out, in, height, width]");
  auto packed = kernels::pack_conv2d(
      tensor.shape[0], tensor.shape[1], tensor.shape[2], tensor.shape[3], storage_dtype(tensor.format, options),
      [&](std::int64_t n, std::span<float> out) { read_row(tensor, n, out); });
  parameters.consumed(tensor.bytes.size());
  return packed;
}

}  // namespace oasr::layers
