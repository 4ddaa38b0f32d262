#include "load/load.h"

#include <fmt/format.h>

#include "base/env.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/foreign_w4.h"
#include "device/kernel_gaps.h"
#include "kernels/scaled_mm/implementation.h"
#include "oasr/version.h"

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

bool is_quantized_by_others(const Checkpoint& checkpoint) {
  for (const auto& [name, tensor] : checkpoint.tensors.tensors) {
    switch (tensor.format) {
      case StorageFormat::q4_0:
      case StorageFormat::q4_1:
      case StorageFormat::q5_0:
      case StorageFormat::q5_1:
      case StorageFormat::q8_0:
      case StorageFormat::ct2_int8: return true;
      default: break;
    }
  }
  return false;
}

// 4-bit weights of others are no layers of ours yet.
Status refuse_foreign(const Checkpoint& checkpoint) {
  const ForeignW4 toolkit = TRY(foreign_w4(checkpoint));
  if (toolkit == ForeignW4::none) return {};
  return unexpected(ErrorCode::unsupported,
                    "has 4-bit weights as " + std::string(enum_name(foreign_w4_names(), toolkit)) + " stores them",
                    checkpoint.path.string(), "make an oasr folder of it first: `oasr convert`");
}

struct Quantization {
  quant::QuantizationSpec spec;
  bool stored = false;  // the checkpoint's own
};

// A quantized checkpoint's own spec has authority, if it names any layer; otherwise layers are chosen by
// the request.
Result<Quantization> quantization_of(const Checkpoint& checkpoint, const quant::QuantRequest& request,
                                     std::span<const quant::LayerFacts> layers) {
  const auto stored = checkpoint.documents.find("quantization");
  if (checkpoint.container == "native" && stored != checkpoint.documents.end()) {
    const Json json = TRY(parse_json(stored->second, "quantization"));
    auto spec = TRY(quant::spec_from_json(json));
    TRY(quant::check_authority(spec, request));
    TRY(quant::check_layers(spec, layers));
    if (!spec.empty()) return Quantization{std::move(spec), true};
  }
  auto chosen = TRY(quant::select(request, layers, quant::Origin::online));
  chosen.producer.version = version();
  return Quantization{std::move(chosen), false};
}

// "native"; of weights that another toolkit quantized also whose they are.
std::string origin_text(const Checkpoint& checkpoint, const quant::Producer& producer) {
  const std::string_view recipe = producer.recipe;
  if (!recipe.starts_with(kImportRecipe)) return checkpoint.container;
  return fmt::format("{}, 4-bit weights imported from {}", checkpoint.container,
                     recipe.substr(kImportRecipe.size()));
}

// Whether GPUs have kernels for all of it.
Status check_gpu(const models::Architecture& architecture, const quant::QuantizationSpec& spec,
                 const ExecContext& context) {
  TRY(kernels::selected_scaled_mm_backend(true));
  const char* remedy = "use --device cpu";
  if (context.isa == Isa::reference) {
    return unexpected(ErrorCode::unsupported, "the definitions of ops run on a CPU, and this is a GPU",
                      "OASR_LAYERS_BACKEND", "use --device cpu, or unset it");
  }
  if (!architecture.gpu) {
    return unexpected(ErrorCode::unsupported, std::string(architecture.name) + " does not run on GPUs yet", "device",
                      remedy);
  }
  for (const auto& [path, layer] : spec.layers) {
    if (!quant::quant_method(layer.scheme).gpu) {
      return unexpected(ErrorCode::unsupported, std::string(layer.scheme) + " has no kernels for GPUs yet", path,
                        remedy);
    }
    const quant::QuantScheme* scheme = TRY(quant::find_scheme(layer.scheme));
    Status gaps = check_kernel_gaps(context.gpu->info(),
                                    enum_name(quant::number_format_names(), scheme->activations.format));
    if (gaps) continue;
    gaps.error().where = path;
    return gaps;
  }
  return {};
}

// Whether the model is to run on the context's GPU.
Result<bool> use_gpu(const models::Architecture& architecture, const quant::QuantizationSpec& spec,
                     const LoadOptions& options, const ExecContext& context) {
  if (context.gpu == nullptr) return false;
  Status served = check_gpu(architecture, spec, context);
  if (served) return true;
  if (!options.gpu_optional) return unexpected(std::move(served).error());
  log(LogLevel::info, "the processor is used: " + served.error().what);
  return false;
}

// The backend of int8 products. What one needs of the GPU is there afterwards if the model has such products.
Result<const kernels::ScaledMMImplementation*> scaled_mm_of(const ExecContext& where, bool quantized) {
  auto backend = TRY(kernels::selected_scaled_mm_backend(where.gpu != nullptr));
  if (where.isa == Isa::reference) {
    if (backend != kernels::ScaledMMBackend::reference && env("OASR_SCALED_MM_BACKEND").value_or("auto") != "auto") {
      return unexpected(ErrorCode::invalid_argument, "OASR_LAYERS_BACKEND=reference runs the reference of every op",
                        "OASR_SCALED_MM_BACKEND", "unset one of the two");
    }
    backend = kernels::ScaledMMBackend::reference;
  }
  const auto& implementation = kernels::scaled_mm_implementation(backend);
  if (where.gpu != nullptr && quantized) TRY(kernels::prepare(implementation, *where.gpu));
  return &implementation;
}

void log_model(const Checkpoint& checkpoint, const models::ModelInfo& info, const quant::Producer& producer,
               const QuantizationReport& report) {
  std::string line = "loaded " + info.architecture;
  if (!info.size_name.empty()) line += " " + info.size_name;
  line += " from " + origin_text(checkpoint, producer) + ": " + std::to_string(info.parameters) +
          " parameters as " + std::string(dtype_name(info.weight_dtype)) + ", " +
          std::to_string(info.weight_bytes >> 20) + " MiB";
  log(LogLevel::info, line);
  for (const auto& [op, lane] : info.lanes) log(LogLevel::debug, op + ": " + lane);
  for (const std::string& note : info.notes) log(LogLevel::info, "note: " + note);
  if (!report.schemes.empty()) log(LogLevel::info, to_text(report, false));
  if (report.reference > 0) {
    log(LogLevel::warning, std::to_string(report.reference) +
                               " layers run on the reference kernel: their speed says nothing");
  }
}

}  // namespace

Status check_arithmetic(Arithmetic arithmetic, bool on_gpu) {
  if (on_gpu || arithmetic == Arithmetic::float32) return {};
  return unexpected(ErrorCode::unsupported,
                    std::string(arithmetic_name(arithmetic)) + " is arithmetic of GPUs, and this runs on the processor",
                    "arithmetic", "use --device cuda, or --arithmetic float32");
}

Result<LoadedModel> load_model(const std::filesystem::path& path, const LoadOptions& options,
                               const ExecContext& context) {
  TRY(check_dtype(options));
  return load_checkpoint(TRY(open_checkpoint(path)), options, context);
}

Result<LoadedModel> load_checkpoint(Checkpoint checkpoint, const LoadOptions& options,
                                    const ExecContext& context) {
  TRY(check_dtype(options));
  LoadedModel loaded;
  loaded.source = std::move(checkpoint);
  TRY(refuse_foreign(loaded.source));
  const models::Architecture* architecture = TRY(models::find_architecture(loaded.source));
  const auto facts = TRY(architecture->layer_facts(loaded.source));
  auto quantization = TRY(quantization_of(loaded.source, options.quantization, facts));
  loaded.quantization = std::move(quantization.spec);
  loaded.on_gpu = TRY(use_gpu(*architecture, loaded.quantization, options, context));
  TRY(check_arithmetic(context.arithmetic, loaded.on_gpu));
  ExecContext where = context;
  if (!loaded.on_gpu) where.gpu = nullptr;
  const kernels::ScaledMMImplementation* scaled_mm = TRY(scaled_mm_of(where, !loaded.quantization.empty()));
  const models::ModelOptions how{
      .dtype = options.dtype,
      .quantization = &loaded.quantization,
      .stored_quantized = quantization.stored,
      .methods = {.scaled_mm = scaled_mm, .isa = context.isa, .pool = context.pool},
      .originals = options.originals ? &loaded.originals : nullptr};
  loaded.model = TRY(architecture->load(loaded.source, how, where));
  const auto layout = TRY(architecture->quantization_layout(loaded.source));
  std::vector<layers::Link> links;
  if (options.link) links = TRY(layers::link(layout, loaded.model->layers()));
  if (loaded.on_gpu) loaded.model->layers().place(*where.gpu);
  loaded.report = make_report(*loaded.model, facts, loaded.quantization, links, context);
  if (!loaded.quantization.empty() && is_quantized_by_others(loaded.source)) {
    loaded.report.notes.push_back("the checkpoint's weights were quantized before: they are rounded twice");
  }
  log_model(loaded.source, loaded.model->info(), loaded.quantization.producer, loaded.report);
  return loaded;
}

}  // namespace oasr::load
