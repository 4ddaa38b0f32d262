#include "api/load_options.h"

#include "base/log.h"
#include "oasr/models.h"

namespace oasr {
namespace {

constexpr int kLargestBatch = 64;

Result<std::optional<DType>> parse_dtype(const std::string& name) {
  if (name == "auto") return std::optional<DType>();
  const auto dtype = parse_enum(dtype_names(), name);
  if (dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16) return dtype;
  return unexpected(ErrorCode::invalid_argument, "'" + name + "' is not a dtype of weights", "dtype",
                    "use auto, float32, float16 or bfloat16");
}

}  // namespace

Result<load::LoadOptions> load_options(const std::string& dtype, const std::string& quantization,
                                       const std::vector<std::string>& quantization_options) {
  load::LoadOptions options;
  options.dtype = TRY(parse_dtype(dtype));
  options.quantization.scheme = quantization;
  for (const std::string& option : quantization_options) {
    TRY(quant::add_option(options.quantization, option));
  }
  return options;
}

Status check_batch_size(int batch_size) {
  if (batch_size >= 1 && batch_size <= kLargestBatch) return {};
  return unexpected(ErrorCode::invalid_argument, "must be 1 to " + std::to_string(kLargestBatch),
                    "batch_size");
}

Result<std::string> locate_model(const std::string& model, bool download) {
  auto path = resolve_model(model);
  if (path || !download || !in_catalogue(model)) return path;
  PullOptions options;
  options.notice = [&](std::string_view line) {
    log(LogLevel::info, model + ": " + std::string(line));
  };
  return pull_model(model, options);
}

}  // namespace oasr
