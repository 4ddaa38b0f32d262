#include "layers/pack.h"

#include <vector>

#include "base/check.h"
#include "kernels/conv1d/op.h"

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

Result<kernels::PackedWeight> pack_stacked(const Parameters& parameters,
                                           std::span<const std::string> names,
                                           const WeightOptions& options) {
  std::vector<StoredTensor> tensors;
  std::int64_t rows = 0;
  std::size_t bytes = 0;
  for (const std::string& name : names) {
    tensors.push_back(parameters.get(name));
    TRY(check_decodes(tensors.back(), name));
    rows += tensors.back().shape[0];
    bytes += tensors.back().bytes.size();
  }
  DType storage = storage_dtype(tensors[0].format, options);
  for (const StoredTensor& tensor : tensors) {
    if (storage_dtype(tensor.format, options) != storage) storage = DType::f32;
  }
  auto packed = kernels::PackedWeight::pack(
      rows, tensors[0].shape[1], storage, [&](std::int64_t n, std::span<float> out) {
        std::size_t part = 0;
        while (n >= tensors[part].shape[0]) n -= tensors[part++].shape[0];
        read_row(tensors[part], n, out);
      });
  parameters.consumed(bytes);
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

}  // namespace oasr::layers
