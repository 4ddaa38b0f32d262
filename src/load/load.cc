#include "load/load.h"

#include "base/log.h"
#include "checkpoint/checkpoint.h"

namespace oasr::load {
namespace {

Status check_dtype(const LoadOptions& options) {
  if (!options.dtype || *options.dtype == DType::f32 || *options.dtype == DType::f16 ||
      *options.dtype == DType::bf16) {
    return {};
  }
  return unexpected(ErrorCode::invalid_argument,
                    "weights can not be kept as " + std::string(dtype_name(*options.dtype)), "dtype",
                    "use float32, float16 or bfloat16");
}

void log_model(const Checkpoint& checkpoint, const models::ModelInfo& info) {
  std::string line = "loaded " + info.architecture;
  if (!info.size_name.empty()) line += " " + info.size_name;
  line += " from " + checkpoint.container + ": " + std::to_string(info.parameters) +
          " parameters as " + std::string(dtype_name(info.weight_dtype)) + ", " +
          std::to_string(info.weight_bytes >> 20) + " MiB";
  log(LogLevel::info, line);
  for (const auto& [op, lane] : info.lanes) log(LogLevel::debug, op + ": " + lane);
  for (const std::string& note : info.notes) log(LogLevel::info, "note: " + note);
}

}  // namespace

Result<std::shared_ptr<const models::SpeechModel>> load_model(const std::filesystem::path& path,
                                                              const LoadOptions& options,
                                                              const ExecContext& context) {
  TRY(check_dtype(options));
  const Checkpoint checkpoint = TRY(open_checkpoint(path));
  const models::Architecture* architecture = TRY(models::find_architecture(checkpoint));
  auto model = TRY(architecture->load(checkpoint, options, context));
  log_model(checkpoint, model->info());
  return model;
}

}  // namespace oasr::load
