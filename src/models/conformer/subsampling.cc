#include "models/conformer/subsampling.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/located.h"
#include "features/cmvn.h"
#include "kernels/rows/op.h"
#include "models/conformer/layer_table.h"

namespace oasr::models::conformer {
namespace {

// Encoder frames that are computed at a time, at most. On a processor enough rows for the last product, whose
// weights are read again for every block, and a first convolution's output that the cache holds; on a GPU
// a bound of memory.
std::int64_t block_frames(const Gpu* gpu) { return gpu != nullptr ? 1024 : 64; }

}  // namespace

Status Subsampling::load_cmvn(const layers::Parameters& parameters, const Checkpoint& checkpoint) {
  const char *mean = "encoder.global_cmvn.mean", *istd = "encoder.global_cmvn.istd";
  if (parameters.has(mean) != parameters.has(istd)) {
    return unexpected(ErrorCode::bad_checkpoint, "has only one of mean and istd of encoder.global_cmvn");
  }
  if (parameters.has(mean)) {
    mean_ = TRY(layers::read_floats(parameters, mean));
    istd_ = TRY(layers::read_floats(parameters, istd));
    return {};
  }
  const auto document = checkpoint.documents.find("global_cmvn");
  if (document == checkpoint.documents.end()) {
    if (!config_.cmvn) return {};
    return unexpected(ErrorCode::not_found, "train.yaml asks for global statistics, and there are none", {},
                      "put the global_cmvn file of the training into the folder");
  }
  const std::string where = checkpoint.path.string() + ": global_cmvn";
  const Json json = TRY(parse_json(document->second, where));
  if (!json.contains("text") || !json["text"].is_string()) {
    return unexpected(ErrorCode::bad_checkpoint, "has no text", where);
  }
  const auto text = json["text"].get<std::string>();
  const auto first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string::npos && text[first] == '{';
  Cmvn cmvn = TRY(is_json ? cmvn_from_json(text, where, config_.input_dim)
                          : cmvn_from_kaldi(text, where, config_.input_dim));
  mean_ = std::move(cmvn.mean);
  istd_ = std::move(cmvn.istd);
  return {};
}

Result<Subsampling> Subsampling::load(const Config& config, const layers::Parameters& parameters,
                                      const layers::WeightOptions& options, const Checkpoint& checkpoint) {
  auto out = TRY(layers::Linear::load(parameters, linear_spec(config, "encoder.embed.out.0"), options));
  Subsampling subsampling(config, std::move(out));
  TRY(located(subsampling.load_cmvn(parameters, checkpoint), checkpoint.path.string()));
  std::vector<float> shift = subsampling.mean_.values();
  for (float& value : shift) value = -value;
  subsampling.shift_ = std::move(shift);
  for (std::size_t stage = 0; stage < config.encoder.subsampling.size(); ++stage) {
    const auto& [kernel, stride] = config.encoder.subsampling[stage];
    const kernels::ConvAxis axis{.taps = kernel, .stride = stride};
    subsampling.convs_.push_back(TRY(layers::Conv2d::load(parameters,
                                                          {.path = "encoder.embed.convs." + std::to_string(stage),
                                                           .vertical = axis,
                                                           .horizontal = axis,
                                                           .activation = kernels::Activation::relu},
                                                          options)));
  }
  return subsampling;
}

void Subsampling::forward(ExecContext& context, ConstMatrix features, Matrix y, Buffers& buffers) const {
  CHECK(y.rows == config_.encoder_frames(features.rows), "one row an encoder frame");
  const std::int64_t rate = config_.subsampling_rate(), right = config_.right_context();
  const std::int64_t most = block_frames(context.gpu), blocks = (y.rows + most - 1) / most;
  const std::int64_t frames = blocks > 0 ? (y.rows + blocks - 1) / blocks : 0;  // of a block: no small rest
  for (std::int64_t first = 0; first < y.rows; first += frames) {
    const std::int64_t count = std::min(frames, y.rows - first);
    block(context, features.row_range(first * rate, (count - 1) * rate + right + 1), y.row_range(first, count),
          buffers);
  }
}

void Subsampling::block(ExecContext& context, ConstMatrix features, Matrix y, Buffers& buffers) const {
  const std::int64_t bins = config_.input_dim, d = config_.encoder.output_size;
  buffers.features.reserve(features.rows * bins);
  const Matrix normalised = buffers.features.matrix(features.rows, bins);
  kernels::shift_scale_rows(context, {.x = features, .shift = shift_.data(), .scale = istd_.data(), .y = normalised});
  if (buffers.stages.empty()) {
    for (std::size_t i = 0; i < convs_.size(); ++i) buffers.stages.emplace_back(0, buffers.features.gpu());
  }
  layers::ImageExtent extent{.batch = 1, .height = features.rows, .width = bins};
  ConstMatrix x{normalised.data, features.rows * bins, 1, 1};
  for (std::size_t stage = 0; stage < convs_.size(); ++stage) {
    const layers::ImageExtent next = convs_[stage].outputs(extent);
    buffers.stages[stage].reserve(next.pixels() * d);
    const Matrix out = buffers.stages[stage].matrix(next.pixels(), d);
    convs_[stage].forward(context, extent, x, out);
    extent = next;
    x = out;
  }
  CHECK(extent.height == y.rows && extent.width == config_.subsampled_bins(), "the shape of the convolutions");
  out_.forward(context, ConstMatrix{x.data, extent.height, extent.width * d, extent.width * d}, y);
  kernels::shift_scale_rows(context, {.x = y, .factor = std::sqrt(static_cast<float>(d)), .y = y});
}

void Subsampling::list(layers::LayerList& layers) {
  for (layers::Conv2d& conv : convs_) layers.image_convolutions.push_back(&conv);
  layers.linears.push_back(&out_);
  if (mean_.empty()) return;
  layers.moves.push_back([this](Gpu& gpu) { shift_.place(gpu); });
  layers.tables.push_back({.name = "encoder.global_cmvn.mean", .shape = {config_.input_dim}, .values = &mean_});
  layers.tables.push_back({.name = "encoder.global_cmvn.istd", .shape = {config_.input_dim}, .values = &istd_});
}

}  // namespace oasr::models::conformer
