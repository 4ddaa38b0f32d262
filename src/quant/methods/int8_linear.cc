#include "quant/methods/int8_linear.h"

namespace oasr::quant {

Int8Linear::Int8Linear(std::int64_t n, std::int64_t k, const Int8Storage& storage,
                       std::vector<float> bias, kernels::Activation activation,
                       const kernels::ScaledMMImplementation& implementation)
    : ScaledLinear(kernels::PackedInt8Weight::pack(n, k, storage.weight, storage.weight_scale),
                   storage.smooth_inv, storage.input_scale, std::move(bias), activation, implementation) {}

MethodInfo Int8Linear::info(Isa isa) const {
  MethodInfo info = kernel_info(isa);
  info.scheme = static_input() != nullptr ? "int8_w8a8_static" : "int8_w8a8";
  info.storage = info.operands = "int8";
  info.bytes += static_cast<std::int64_t>(weight().bytes());
  return info;
}

std::vector<TensorSource> Int8Linear::state(const std::string& path) const {
  std::vector<TensorSource> tensors;
  tensors.push_back({.name = path + ".weight",
                     .format = StorageFormat::i8,
                     .shape = {weight().n(), weight().k()},
                     .row = [this](std::int64_t row, std::span<std::byte> out) {
                       weight().unpack_row(row, {reinterpret_cast<std::int8_t*>(out.data()), out.size()});
                     }});
  tensors.push_back(float_source(path + ".weight_scale", {weight().n()},
                                 {weight().scale(), static_cast<std::size_t>(weight().n())}));
  if (!smooth_inv().empty()) tensors.push_back(float_source(path + ".smooth_inv", {weight().k()}, smooth_inv()));
  if (static_input() != nullptr) tensors.push_back(float_source(path + ".input_scale", {1}, static_input()->scale.values()));
  add_bias(path, bias(), tensors);
  return tensors;
}

Result<Int8Storage> quantize_weight(Isa isa, const LinearSource& source) {
  const auto k = static_cast<std::size_t>(source.k);
  Int8Storage storage;
  storage.weight.resize(static_cast<std::size_t>(source.n) * k);
  storage.weight_scale.resize(static_cast<std::size_t>(source.n));
  std::vector<float> row(k);
  const auto quantize = kernels::quantize_lane(isa).per_token;
  for (std::int64_t n = 0; n < source.n; ++n) {
    source.rows(n, row);
    const kernels::NotFinite found =
        quantize({.x = row.data(),
                  .ldx = source.k,
                  .m = 1,
                  .k = source.k,
                  .q = storage.weight.data() + static_cast<std::size_t>(n) * k,
                  .ldq = source.k,
                  .scale = storage.weight_scale.data() + n},
                 0, 1);
    if (found) {
      return unexpected(ErrorCode::bad_checkpoint,
                        "row " + std::to_string(n) + " of the weight holds NaN or infinity", {},
                        "the checkpoint is damaged: get it again");
    }
  }
  return storage;
}

}  // namespace oasr::quant
