#include "oasr/recognizer.h"

#include <chrono>
#include <mutex>

#include "api/device.h"
#include "api/guard.h"
#include "api/layer_profile.h"
#include "api/load_options.h"
#include "api/loaded_facade.h"
#include "api/open_input.h"
#include "api/timed_model.h"
#include "base/json.h"
#include "base/log.h"
#include "engine/transcriber.h"
#include "load/load.h"

namespace oasr {
namespace {

// "float32", "int8 (60 layers) and float16"
std::string arithmetic(const load::QuantizationReport& report) {
  if (report.schemes.empty()) return report.arithmetic;
  return "int8 (" + std::to_string(report.quantized + report.reference) + " layers) and " + report.arithmetic;
}

}  // namespace

struct Recognizer::Impl {
  EngineConfig config;
  std::shared_ptr<const load::QuantizationReport> quantization;
  std::unique_ptr<LayerProfile> profile = std::make_unique<LayerProfile>();
  std::shared_ptr<Timings> timings = std::make_shared<Timings>();
  std::unique_ptr<ThreadPool> pool;
  std::shared_ptr<Gpu> model_gpu;  // where the model's numbers are, kept by all clones
  std::unique_ptr<Gpu> gpu;        // a clone's own queue there
  std::shared_ptr<const models::SpeechModel> model;  // after the GPU that its numbers are on
  std::string no_gpu_because;  // see Device
  ExecContext context;
  std::unique_ptr<engine::Transcriber> transcriber;  // after the pool: it uses it to the end

  Status start_threads() {
    context.isa = TRY(selected_isa());
    pool = std::make_unique<ThreadPool>(TRY(thread_count(config.threads)));
    context.pool = pool.get();
    context.observer = profile.get();
    context.arithmetic = TRY(parse_arithmetic(config.arithmetic, config.device));
    return {};
  }

  // On the device of the configuration.
  Status load_model(const std::filesystem::path& path, load::LoadOptions options) {
    Device device = TRY(open_device(config.device));
    no_gpu_because = device.no_gpu_because;
    context.gpu = device.gpu.get();
    options.gpu_optional = device.optional;
    auto loaded = TRY(load::load_model(path, options, context));
    if (loaded.on_gpu) model_gpu = std::move(device.gpu);
    if (!loaded.on_gpu) context.gpu = nullptr;
    take(loaded);
    return {};
  }

  void take(const load::LoadedModel& loaded) {
    model = loaded.model;
    quantization = std::make_shared<const load::QuantizationReport>(loaded.report);
  }

  // Notes on a result how the model ran.
  Result<Transcript> described(Result<Transcript> transcript) const {
    if (!transcript) return transcript;
    transcript->dtype = dtype_name(model->info().weight_dtype);
    transcript->arithmetic = quantization->arithmetic;
    for (const auto& scheme : quantization->schemes) {
      transcript->quantization += (transcript->quantization.empty() ? "" : ",") + scheme;
    }
    transcript->quantization_options = config.quantization_options;
    return transcript;
  }

  Status start_transcriber() {
    auto measured = model;  // attention encoder-decoders are measured call by call
    if (auto aed = std::dynamic_pointer_cast<const models::AedModel>(model)) measured = timed_model(std::move(aed), timings);
    transcriber = TRY(engine::Transcriber::create(std::move(measured), context, config.batch_size));
    return {};
  }
};

Recognizer::Recognizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Recognizer::~Recognizer() = default;
Recognizer::Recognizer(Recognizer&&) noexcept = default;
Recognizer& Recognizer::operator=(Recognizer&&) noexcept = default;

Result<Recognizer> Recognizer::load(const EngineConfig& config) {
  return guarded([&]() -> Result<Recognizer> {
    TRY(check_batch_size(config.batch_size));
    auto options = TRY(load_options(config.dtype, config.quantization, config.quantization_options));
    const auto path = TRY(locate_model(config.model, config.download));
    const auto start = std::chrono::steady_clock::now();
    auto impl = std::make_unique<Impl>();
    impl->config = config;
    TRY(impl->start_threads());
    TRY(impl->load_model(path, options));
    TRY(impl->start_transcriber());
    impl->timings->load_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return Recognizer(std::move(impl));
  });
}

Result<Recognizer> LoadedFacade::recognizer(const load::LoadedModel& loaded, const EngineConfig& config) {
  return guarded([&]() -> Result<Recognizer> {
    if (TRY(open_device(config.device)).gpu != nullptr) return Recognizer::load(config);
    TRY(check_batch_size(config.batch_size));
    auto impl = std::make_unique<Recognizer::Impl>();
    impl->config = config;
    TRY(impl->start_threads());
    TRY(load::check_arithmetic(impl->context.arithmetic, false));
    impl->take(loaded);
    TRY(impl->start_transcriber());
    return Recognizer(std::move(impl));
  });
}

Result<Recognizer> Recognizer::clone() const {
  return guarded([&]() -> Result<Recognizer> {
    auto impl = std::make_unique<Impl>();
    impl->config = impl_->config;
    impl->model = impl_->model;
    impl->quantization = impl_->quantization;
    impl->no_gpu_because = impl_->no_gpu_because;
    TRY(impl->start_threads());
    if (impl_->model_gpu != nullptr) {
      impl->model_gpu = impl_->model_gpu;
      impl->gpu = TRY(Gpu::open(impl->model_gpu->info().index));
      impl->context.gpu = impl->gpu.get();
    }
    TRY(impl->start_transcriber());
    return Recognizer(std::move(impl));
  });
}

namespace {

// Recordings are opened and read by several threads, of which those that wait for a pipe ask whether to go on.
Callbacks asked_one_at_a_time(Callbacks callbacks) {
  if (!callbacks.cancelled) return callbacks;
  callbacks.cancelled = [ask = std::move(callbacks.cancelled), turn = std::make_shared<std::mutex>()] {
    const std::lock_guard lock(*turn);
    return ask();
  };
  return callbacks;
}

}  // namespace

Result<Transcript> Recognizer::transcribe(const AudioInput& audio, const TranscribeOptions& options,
                                          const Callbacks& callbacks) {
  return guarded([&]() -> Result<Transcript> {
    const Callbacks asking = asked_one_at_a_time(callbacks);
    const auto source = TRY(open_input(audio, engine::sample_rate_of(*impl_->model), asking));
    return impl_->described(impl_->transcriber->transcribe(*source, options, asking));
  });
}

void Recognizer::transcribe_batch(
    std::span<const AudioInput> audio, const TranscribeOptions& options,
    const std::function<void(std::size_t, Result<Transcript>)>& done, const Callbacks& callbacks) {
  std::size_t next = 0;
  const int rate = engine::sample_rate_of(*impl_->model);
  const Callbacks asking = asked_one_at_a_time(callbacks);
  const Callbacks reading{.progress = {}, .segment = {}, .cancelled = asking.cancelled};
  const auto status = guarded([&]() -> Status {
    impl_->transcriber->transcribe_many(
        audio.size(), [&](std::size_t index) { return open_input(audio[index], rate, reading); }, options,
        asking, [&](std::size_t index, Result<Transcript> transcript) {
          next = index + 1;
          done(index, impl_->described(std::move(transcript)));
        });
    return {};
  });
  // A bug that stopped the batch is told for every recording that it left without a result.
  for (; next < audio.size(); ++next) {
    done(next, status ? Result<Transcript>(unexpected(ErrorCode::internal, "no result"))
                      : Result<Transcript>(unexpected(status.error())));
  }
}

void Recognizer::measure_layers(bool on) { impl_->profile->measure(on); }

std::vector<LayerTime> Recognizer::layer_times() const {
  return impl_->profile->times(*impl_->quantization);
}

std::string Recognizer::quantization_info() const {
  return dump_json(load::to_json(*impl_->quantization), 2) + "\n";
}

std::string Recognizer::quantization_summary(bool layers) const {
  return load::to_text(*impl_->quantization, layers);
}

TranscribeOptions Recognizer::resolved(const TranscribeOptions& options) const {
  return impl_->transcriber->resolved(options);
}

Timings Recognizer::timings() const {
  Timings timings = *impl_->timings;
  const engine::StageTimes stages = impl_->transcriber->stage_times();
  timings.feature_seconds = stages.features;
  timings.encode_seconds += stages.encode;
  timings.search_seconds = stages.search;
  timings.rescore_seconds = stages.rescore;
  timings.utterances = stages.utterances;
  timings.searched_on_gpu = stages.searched_on_gpu;
  timings.launches = launches_of(impl_->context.gpu);
  return timings;
}

std::string Recognizer::report() const {
  const auto& info = impl_->model->info();
  OrderedJson json = {{"model", impl_->config.model},
                      {"architecture", info.architecture},
                      {"size", info.size_name},
                      {"parameters", info.parameters},
                      {"weights", dtype_name(info.weight_dtype)},
                      {"weight_bytes", info.weight_bytes},
                      {"schemes", impl_->quantization->schemes},
                      {"quantized_layers", impl_->quantization->quantized + impl_->quantization->reference},
                      {"arithmetic", arithmetic(*impl_->quantization)},
                      {"device", impl_->model_gpu ? impl_->model_gpu->info().name : "cpu"},
                      {"graphs", impl_->context.gpu != nullptr && impl_->context.gpu->starts_graphs()},
                      {"isa", isa_name(impl_->context.isa)},
                      {"threads", impl_->pool->threads()},
                      {"batch_size", impl_->config.batch_size},
                      {"lanes", info.lanes},
                      {"languages", info.languages.size()},
                      {"notes", info.notes}};
  if (!impl_->no_gpu_because.empty()) json["no_gpu_because"] = impl_->no_gpu_because;
  return dump_json(json, 2) + "\n";
}

}  // namespace oasr
