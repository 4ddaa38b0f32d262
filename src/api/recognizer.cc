#include "oasr/recognizer.h"

#include <chrono>

#include "api/guard.h"
#include "api/timed_model.h"
#include "audio/audio_source.h"
#include "base/json.h"
#include "base/log.h"
#include "engine/transcriber.h"
#include "load/load.h"
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

// The checkpoint's path; a catalogue name that is not cached is pulled.
Result<std::string> locate_model(const EngineConfig& config) {
  auto path = resolve_model(config.model);
  if (path || !config.download || !in_catalogue(config.model)) return path;
  PullOptions options;
  options.notice = [&](std::string_view line) {
    log(LogLevel::info, config.model + ": " + std::string(line));
  };
  return pull_model(config.model, options);
}

Result<std::unique_ptr<AudioSource>> open_input(const AudioInput& input) {
  AudioOptions options;
  options.channel = input.channel;
  if (!input.raw_encoding.empty()) {
    options.raw = RawFormat{input.raw_encoding, input.raw_sample_rate, input.raw_channels};
  }
  if (!input.path.empty()) return open_audio(input.path, options);
  return audio_from_samples({input.samples.begin(), input.samples.end()}, input.sample_rate,
                            options);
}

}  // namespace

struct Recognizer::Impl {
  EngineConfig config;
  std::shared_ptr<const models::AedModel> model;
  std::shared_ptr<Timings> timings = std::make_shared<Timings>();
  std::unique_ptr<ThreadPool> pool;
  ExecContext context;
  std::unique_ptr<engine::Transcriber> transcriber;  // after the pool: it uses it to the end

  Status start_threads() {
    context.isa = TRY(selected_isa());
    pool = std::make_unique<ThreadPool>(TRY(thread_count(config.threads)));
    context.pool = pool.get();
    return {};
  }

  Status start_transcriber() {
    transcriber = TRY(
        engine::Transcriber::create(timed_model(model, timings), context, config.batch_size));
    return {};
  }
};

Recognizer::Recognizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Recognizer::~Recognizer() = default;
Recognizer::Recognizer(Recognizer&&) noexcept = default;
Recognizer& Recognizer::operator=(Recognizer&&) noexcept = default;

Result<Recognizer> Recognizer::load(const EngineConfig& config) {
  return guarded([&]() -> Result<Recognizer> {
    if (config.batch_size < 1 || config.batch_size > kLargestBatch) {
      return unexpected(ErrorCode::invalid_argument, "must be 1 to " + std::to_string(kLargestBatch),
                        "batch_size");
    }
    load::LoadOptions options;
    options.dtype = TRY(parse_dtype(config.dtype));
    const auto path = TRY(locate_model(config));
    const auto start = std::chrono::steady_clock::now();
    auto impl = std::make_unique<Impl>();
    impl->config = config;
    TRY(impl->start_threads());
    const auto model = TRY(load::load_model(path, options, impl->context));
    impl->model = std::dynamic_pointer_cast<const models::AedModel>(model);
    if (impl->model == nullptr) {
      return unexpected(ErrorCode::unsupported, "no engine serves " + model->info().architecture,
                        path);
    }
    TRY(impl->start_transcriber());
    impl->timings->load_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return Recognizer(std::move(impl));
  });
}

Result<Recognizer> Recognizer::clone() const {
  return guarded([&]() -> Result<Recognizer> {
    auto impl = std::make_unique<Impl>();
    impl->config = impl_->config;
    impl->model = impl_->model;
    TRY(impl->start_threads());
    TRY(impl->start_transcriber());
    return Recognizer(std::move(impl));
  });
}

Result<Transcript> Recognizer::transcribe(const AudioInput& audio, const TranscribeOptions& options,
                                          const Callbacks& callbacks) {
  return guarded([&]() -> Result<Transcript> {
    const auto source = TRY(open_input(audio));
    return impl_->transcriber->transcribe(*source, options, callbacks);
  });
}

void Recognizer::transcribe_batch(
    std::span<const AudioInput> audio, const TranscribeOptions& options,
    const std::function<void(std::size_t, Result<Transcript>)>& done, const Callbacks& callbacks) {
  std::size_t next = 0;
  const auto status = guarded([&]() -> Status {
    impl_->transcriber->transcribe_many(
        audio.size(), [&](std::size_t index) { return open_input(audio[index]); }, options,
        callbacks, [&](std::size_t index, Result<Transcript> transcript) {
          next = index + 1;
          done(index, std::move(transcript));
        });
    return {};
  });
  // A bug that stopped the batch is told for every recording that it left without a result.
  for (; next < audio.size(); ++next) {
    done(next, status ? Result<Transcript>(unexpected(ErrorCode::internal, "no result"))
                      : Result<Transcript>(unexpected(status.error())));
  }
}

Timings Recognizer::timings() const { return *impl_->timings; }

std::string Recognizer::report() const {
  const auto& info = impl_->model->info();
  OrderedJson json = {{"model", impl_->config.model},
                      {"architecture", info.architecture},
                      {"size", info.size_name},
                      {"parameters", info.parameters},
                      {"weights", dtype_name(info.weight_dtype)},
                      {"weight_bytes", info.weight_bytes},
                      {"arithmetic", "float32"},
                      {"isa", enum_name(isa_names(), impl_->context.isa)},
                      {"threads", impl_->pool->threads()},
                      {"batch_size", impl_->config.batch_size},
                      {"lanes", info.lanes},
                      {"languages", info.languages.size()},
                      {"notes", info.notes}};
  return dump_json(json, 2) + "\n";
}

}  // namespace oasr
