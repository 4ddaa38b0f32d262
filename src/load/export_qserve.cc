#include "load/export_qserve.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>

#include "checkpoint/huggingface_writer.h"
#include "formats/w4_packed.h"
#include "load/convert.h"
#include "load/import_w4.h"

namespace oasr::load {
namespace {

Unexpected refuse(std::string what, std::string where, std::string remedy = {}) {
  return unexpected(ErrorCode::unsupported, std::move(what), std::move(where), std::move(remedy));
}

// Quantizing and writing for others are two conversions.
constexpr const char* kTwoSteps =
    "make an oasr folder with 4-bit layers first (`oasr convert SRC FOLDER --quantization w4a8_g128`), then "
    "convert that folder with --to qserve and without --quantization";

// What all layers have to share, since QServe's files say it once or not at all.
Result<W4Claims> claims_of(const quant::QuantizationSpec& spec) {
  W4Claims claims{.form = {}, .zeros = {}, .order = formats::ScaleOrder::quads};
  for (const auto& [path, layer] : spec.layers) {
    const auto form = layer.scheme == "w4a8_g128"  ? std::optional(formats::W4Form::per_group)
                      : layer.scheme == "w4a8_chn" ? std::optional(formats::W4Form::per_channel)
                                                   : std::nullopt;
    const char* remedy = "leave such layers at full precision (--quantization-option ignore=…)";
    if (!form) return refuse(fmt::format("QServe's layout has no layers of {}", layer.scheme), path, remedy);
    if (layer.smoothed) return refuse("QServe's layout has no smoothed inputs", path, remedy);
    if (claims.form.value_or(*form) != *form ||
        claims.zeros.value_or(*layer.zero_domain) != *layer.zero_domain) {
      return refuse("QServe's layout has one form and one zero domain for all layers, and this is another",
                    path, remedy);
    }
    claims.form = form;
    claims.zeros = layer.zero_domain;
  }
  if (!claims.form) return refuse("the model has no 4-bit layers", {}, kTwoSteps);
  return claims;
}

TensorSource whole(const std::string& name, const StoredTensor& tensor) {
  return {.name = name,
          .format = tensor.format,
          .shape = tensor.shape,
          .row = [tensor](std::int64_t row, std::span<std::byte> out) {
            std::memcpy(out.data(), tensor.bytes.data() + static_cast<std::size_t>(row) * out.size(),
                        out.size());
          }};
}

// Part `i` of `parts` along an axis: rows, or columns of a matrix. Codes are tiles of 32 rows, which lie
// behind each other.
TensorSource part_of(const std::string& name, const StoredTensor& tensor, bool columns, std::size_t i,
                     std::size_t parts) {
  std::vector<std::int64_t> extents(tensor.shape.extents().begin(), tensor.shape.extents().end());
  extents[columns ? 1 : 0] /= static_cast<std::int64_t>(parts);
  // A part of a row, or of all rows.
  const std::size_t rows = columns ? static_cast<std::size_t>(extents[0]) : 1;
  const std::size_t whole_bytes = tensor.bytes.size() / rows, part_bytes = whole_bytes / parts;
  return {.name = name,
          .format = tensor.format,
          .shape = *Shape::checked(extents),
          .row = [=](std::int64_t row, std::span<std::byte> out) {
            const auto r = static_cast<std::size_t>(row);
            const std::size_t at =
                columns ? r * whole_bytes + i * part_bytes : i * part_bytes + r * out.size();
            std::memcpy(out.data(), tensor.bytes.data() + at, out.size());
          }};
}

// The tensors of the state dict; `parts` are those of a layer.
Status add_parts(const StateDict& state, const std::string& path, const std::vector<std::string>& parts,
                 std::vector<TensorSource>& out) {
  const std::string prefix = path + ".";
  for (auto it = state.tensors.lower_bound(prefix);
       it != state.tensors.end() && it->first.starts_with(prefix); ++it) {
    const std::string suffix = it->first.substr(prefix.size());
    const bool columns = suffix == "s2_scales" || suffix == "s2_zeros";
    const std::int64_t rows = it->second.shape[columns ? 1 : 0], count = std::ssize(parts);
    if (rows % count != 0 || (suffix == "qweight" && rows % (count * formats::kTile) != 0)) {
      return refuse(fmt::format("{} channels in {} parts: every part has to be a multiple of {}", rows, count,
                                formats::kTile),
                    path);
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      out.push_back(part_of(parts[i] + "." + suffix, it->second, columns, i, parts.size()));
    }
  }
  return {};
}

}  // namespace

Status save_qserve(const LoadedModel& loaded, const std::filesystem::path& folder,
                   const WriteProgress& progress) {
  const Checkpoint& source = loaded.source;
  if (source.container != "native") {
    return refuse("only an oasr folder is written as QServe's layout", source.path.string(), kTwoSteps);
  }
  if (loaded.quantization.producer.recipe == "online") {
    return refuse("the folder's layers are at full precision, and QServe's layout takes what a folder stores",
                  source.path.string(), kTwoSteps);
  }
  const W4Claims claims = TRY(claims_of(loaded.quantization));
  const auto about = [&](const Checksums& tensors) {
    return qserve_document_text({.claims = claims, .spec = loaded.quantization, .tensors = tensors});
  };
  NativeContent content = content_of(loaded);
  const models::Architecture* architecture = TRY(models::find_architecture(source));
  std::map<std::string, std::vector<std::string>, std::less<>> stacked;
  for (const quant::LayerFacts& layer : TRY(architecture->layer_facts(source))) {
    if (!layer.parts.empty()) stacked[layer.path] = layer.parts;
  }
  for (const auto& [path, parts] : stacked) TRY(add_parts(source.tensors, path, parts, content.tensors));
  for (const auto& [name, tensor] : source.tensors.tensors) {
    if (!stacked.contains(std::string_view(name).substr(0, name.rfind('.')))) {
      content.tensors.push_back(whole(name, tensor));
    }
  }
  return write_huggingface(folder, content, {kQServeDocument, about}, progress);
}

}  // namespace oasr::load
