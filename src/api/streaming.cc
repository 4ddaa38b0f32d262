#include "oasr/streaming.h"

#include "api/device.h"
#include "api/guard.h"
#include "api/load_options.h"
#include "api/loaded_facade.h"
#include "api/open_input.h"
#include "base/json.h"
#include "engine/streaming.h"
#include "load/load.h"

namespace oasr {

struct StreamingRecognizer::Impl {
  std::string name;
  Device device;
  std::shared_ptr<const models::CtcModel> model;  // after the GPU that its numbers may be on
  load::QuantizationReport quantization;
  std::unique_ptr<ThreadPool> pool;
  ExecContext context;
  double chunk_seconds = 0;
  std::unique_ptr<engine::StreamingSessions> sessions;  // after the pool: they use it to the end

  Status start_threads(const EngineConfig& config) {
    name = config.model;
    context.isa = TRY(selected_isa());
    pool = std::make_unique<ThreadPool>(TRY(thread_count(config.threads)));
    context.pool = pool.get();
    context.arithmetic = TRY(parse_arithmetic(config.arithmetic, config.device));
    return {};
  }

  Status serve(const load::LoadedModel& loaded, const std::string& path, const TranscribeOptions& options,
               const StreamingOptions& streaming) {
    model = std::dynamic_pointer_cast<const models::CtcModel>(loaded.model);
    if (model == nullptr) {
      return unexpected(ErrorCode::unsupported,
                        loaded.model->info().architecture + " decodes whole windows and can not be streamed", path,
                        "use a model with a CTC head (a WeNet U2++), or leave --streaming out");
    }
    quantization = loaded.report;
    sessions = TRY(engine::StreamingSessions::create(model, options, streaming, context));
    chunk_seconds = sessions->chunk_seconds();
    return {};
  }

  // Decodes what is complete and tells the events.
  Status tell(Session session, const std::function<void(const StreamEvent&)>& event) {
    while (sessions->ready()) {
      sessions->step();
      for (const StreamEvent& told : sessions->take_events(session)) {
        if (told.kind == StreamEvent::Kind::failed) return unexpected(ErrorCode::bad_checkpoint, told.text);
        event(told);
      }
    }
    return {};
  }

  Status transcribe(const AudioInput& audio, const std::function<void(const StreamEvent&)>& event,
                    const Callbacks& callbacks) {
    const int rate = model->front_end().sample_rate;
    const auto source = TRY(open_input(audio, rate, callbacks));
    const Session session = TRY(sessions->open(rate));
    const auto closed = std::unique_ptr<const Session, std::function<void(const Session*)>>(
        &session, [this](const Session* open) { sessions->close(*open); });
    // A tenth of a second at a time: what a microphone's program has written is decoded at once.
    std::vector<float> samples(static_cast<std::size_t>(rate) / 10);
    std::int64_t read = 0;
    while (const std::size_t count = TRY(source->read(samples))) {
      if (callbacks.cancelled && callbacks.cancelled()) return unexpected(ErrorCode::cancelled, "stopped");
      TRY(sessions->accept(session, std::span(samples).first(count)));
      TRY(tell(session, event));
      read += static_cast<std::int64_t>(count);
      if (callbacks.progress) {
        callbacks.progress(static_cast<double>(read) / rate, source->info().declared_seconds.value_or(0));
      }
    }
    TRY(sessions->finish(session));
    TRY(tell(session, event));
    if (!source->truncated()) return {};
    return unexpected(ErrorCode::bad_audio, "the audio is damaged or ends early: " + *source->truncated(), {},
                      "what was recognised until there stands above");
  }
};

StreamingRecognizer::StreamingRecognizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StreamingRecognizer::~StreamingRecognizer() = default;
StreamingRecognizer::StreamingRecognizer(StreamingRecognizer&&) noexcept = default;
StreamingRecognizer& StreamingRecognizer::operator=(StreamingRecognizer&&) noexcept = default;

Result<StreamingRecognizer> StreamingRecognizer::load(const EngineConfig& config, const TranscribeOptions& options,
                                                      const StreamingOptions& streaming) {
  return guarded([&]() -> Result<StreamingRecognizer> {
    auto how = TRY(load_options(config.dtype, config.quantization, config.quantization_options));
    const auto path = TRY(locate_model(config.model, config.download));
    auto impl = std::make_unique<Impl>();
    TRY(impl->start_threads(config));
    impl->device = TRY(open_device(config.device));
    impl->context.gpu = impl->device.gpu.get();
    how.gpu_optional = impl->device.optional;
    const auto loaded = TRY(load::load_model(path, how, impl->context));
    if (!loaded.on_gpu) impl->context.gpu = nullptr;
    TRY(impl->serve(loaded, path, options, streaming));
    return StreamingRecognizer(std::move(impl));
  });
}

Result<StreamingRecognizer> LoadedFacade::streaming(const load::LoadedModel& loaded, const EngineConfig& config,
                                                    const TranscribeOptions& options) {
  return guarded([&]() -> Result<StreamingRecognizer> {
    if (TRY(open_device(config.device)).gpu != nullptr) return StreamingRecognizer::load(config, options);
    auto impl = std::make_unique<StreamingRecognizer::Impl>();
    TRY(impl->start_threads(config));
    TRY(load::check_arithmetic(impl->context.arithmetic, false));
    TRY(impl->serve(loaded, config.model, options, {}));
    return StreamingRecognizer(std::move(impl));
  });
}

Result<StreamingRecognizer::Session> StreamingRecognizer::open(int sample_rate) {
  return guarded([&] { return impl_->sessions->open(sample_rate); });
}

Status StreamingRecognizer::accept(Session session, std::span<const float> samples) {
  return guarded([&] { return impl_->sessions->accept(session, samples); });
}

Status StreamingRecognizer::finish(Session session) {
  return guarded([&] { return impl_->sessions->finish(session); });
}

void StreamingRecognizer::close(Session session) { impl_->sessions->close(session); }

bool StreamingRecognizer::step() {
  if (!impl_->sessions->ready()) return false;
  // What it throws has ended the sessions, which are told as an event.
  static_cast<void>(guarded([&]() -> Status {
    impl_->sessions->step();
    return {};
  }));
  return true;
}

std::vector<StreamEvent> StreamingRecognizer::take_events(Session session) {
  return impl_->sessions->take_events(session);
}

Status StreamingRecognizer::transcribe(const AudioInput& audio, const std::function<void(const StreamEvent&)>& event,
                                       const Callbacks& callbacks) {
  return guarded([&] { return impl_->transcribe(audio, event, callbacks); });
}

Result<std::vector<float>> StreamingRecognizer::read(const AudioInput& audio) const {
  return guarded([&]() -> Result<std::vector<float>> {
    const auto source = TRY(open_input(audio, sample_rate(), {}));
    auto samples = TRY(read_all(*source));
    if (!source->truncated()) return samples;
    return unexpected(ErrorCode::bad_audio, "the audio is damaged or ends early: " + *source->truncated(), audio.path);
  });
}

std::pair<std::size_t, std::size_t> StreamingRecognizer::memory(Session session) const {
  const models::CtcState::Memory memory = impl_->sessions->memory(session);
  return {memory.caches, memory.other};
}

int StreamingRecognizer::sample_rate() const { return impl_->model->front_end().sample_rate; }
double StreamingRecognizer::chunk_seconds() const { return impl_->chunk_seconds; }

std::string StreamingRecognizer::report() const {
  const auto& info = impl_->model->info();
  OrderedJson json = {{"model", impl_->name},
                      {"architecture", info.architecture},
                      {"size", info.size_name},
                      {"parameters", info.parameters},
                      {"weights", dtype_name(info.weight_dtype)},
                      {"schemes", impl_->quantization.schemes},
                      {"quantized_layers", impl_->quantization.quantized + impl_->quantization.reference},
                      {"arithmetic", impl_->quantization.arithmetic},
                      {"device", impl_->context.gpu != nullptr ? impl_->context.gpu->info().name : "cpu"},
                      {"isa", isa_name(impl_->context.isa)},
                      {"threads", impl_->pool->threads()},
                      {"chunk_seconds", impl_->chunk_seconds},
                      {"notes", info.notes}};
  if (!impl_->device.no_gpu_because.empty()) json["no_gpu_because"] = impl_->device.no_gpu_because;
  return dump_json(json, 2) + "\n";
}

}  // namespace oasr
