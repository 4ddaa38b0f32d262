#include "engine/streaming.h"

#include <fmt/format.h>

#include <algorithm>

#include "audio/mixdown.h"
#include "audio/resampler.h"
#include "decode/rescoring.h"
#include "engine/ctc_search.h"
#include "engine/fault_error.h"
#include "features/fbank.h"

namespace oasr::engine {
namespace {

Result<decode::EndpointOptions> endpoint_rules(const StreamingOptions& options) {
  decode::EndpointOptions rules;
  rules.rules.clear();
  for (const Endpoint& rule : options.endpoints) {
    rules.rules.push_back({rule.must_contain_speech, rule.trailing_silence, rule.utterance_length});
  }
  if (!rules.rules.empty()) TRY(decode::check_endpoint_options(rules));
  return rules;
}

}  // namespace

struct StreamingSessions::Impl {
  struct Session {
    Session(Resampler resampler, Fbank fbank) : resampler(std::move(resampler)), fbank(std::move(fbank)) {}

    Resampler resampler;
    Fbank fbank;
    bool finished = false;   // no more audio
    bool over = false;       // `done` was told
    std::vector<float> features;      // [n, bins] that the utterance at hand has not been given, from
    std::int64_t first_feature = 0;   // this frame of the recording on
    models::UtteranceId utterance = 0;
    std::int64_t begin = 0;           // feature frame where the utterance begins
    std::int64_t given = 0;           // feature frames that it has been given
    std::optional<CtcSearch> search;
    std::string last_partial;
    int count = 0;                    // utterances that are over
    std::vector<StreamEvent> events;
    std::vector<float> resampled;     // scratch
  };

  std::shared_ptr<const models::CtcModel> model;
  ExecContext context;
  CtcPlan plan;
  decode::EndpointOptions rules;
  bool partial_results = true;
  std::unique_ptr<models::CtcState> state;
  std::vector<std::unique_ptr<Session>> sessions;  // null: free

  int bins() const { return model->front_end().num_mel_bins; }
  double frame_shift() const { return model->front_end().frame_shift_ms / 1000; }
  double seconds(const Session& session, std::int64_t frames) const {
    return static_cast<double>(session.begin) * frame_shift() + static_cast<double>(frames) * plan.seconds_per_frame();
  }

  Session* find(SessionId id) {
    const auto at = static_cast<std::size_t>(id);
    return id >= 0 && at < sessions.size() ? sessions[at].get() : nullptr;
  }

  void begin_utterance(Session& session) {
    session.utterance = state->open(plan.mask, false);
    session.begin = session.first_feature;
    session.given = 0;
    session.search = CtcSearch::make(plan).value();  // the plan's options are checked
    session.last_partial.clear();
  }

  // Gives the model what it needs for its next chunk, and no more: the rest belongs to the next utterance
  // if this chunk ends the one at hand.
  void feed(Session& session) {
    const std::int64_t chunk = std::int64_t{plan.mask.chunk_size} * model->subsampling_rate();
    const std::int64_t wanted = state->frames(session.utterance) * model->subsampling_rate() + chunk +
                                model->right_context() + 1 - model->subsampling_rate();
    const std::int64_t held = static_cast<std::int64_t>(session.features.size()) / bins();
    const std::int64_t place = session.begin + session.given - session.first_feature;  // among those held
    const std::int64_t count = std::min(wanted - session.given, held - place);
    if (count <= 0) return;
    state->accept(session.utterance, std::span(session.features).subspan(static_cast<std::size_t>(place * bins()),
                                                                         static_cast<std::size_t>(count * bins())));
    session.given += count;
  }

  // Feature frames before the first one that a next utterance would need.
  void drop_used(Session& session) {
    const std::int64_t used =
        session.begin + state->frames(session.utterance) * model->subsampling_rate() - session.first_feature;
    if (used <= 0) return;
    session.features.erase(session.features.begin(), session.features.begin() + used * bins());
    session.first_feature += used;
  }

  bool exhausted(const Session& session) const {
    const std::int64_t held = static_cast<std::int64_t>(session.features.size()) / bins();
    return session.first_feature + held == session.begin + session.given;
  }

  // Whether a step would compute something for it.
  bool prepare(Session& session) {
    if (session.over) return false;
    feed(session);
    if (session.finished && exhausted(session)) state->finish(session.utterance);
    return state->ready(session.utterance);
  }

  void tell_partial(Session& session) {
    if (!partial_results) return;
    const auto tokens = session.search->best();
    std::string text = text_of(plan, tokens);
    if (text == session.last_partial) return;
    const std::size_t stable = std::min(session.search->stable_tokens(), tokens.size());
    StreamEvent event;
    event.kind = StreamEvent::Kind::partial;
    event.utterance = session.count;
    event.stable = std::min(text.size(), text_of(plan, std::span(tokens).first(stable)).size());
    event.time = seconds(session, session.search->frames());
    event.text = text;
    session.last_partial = std::move(text);
    session.events.push_back(std::move(event));
  }

  std::vector<CtcResult> results(const Session& session) {
    const auto hypotheses = session.search->hypotheses();
    if (plan.mode != CtcMode::attention_rescoring) return first_pass_results(hypotheses);
    const decode::RescoringInput input{.utterance = session.utterance, .hypotheses = hypotheses};
    const auto rescored = decode::rescore(
        *state, {&input, 1}, {.ctc_weight = plan.ctc_weight, .reverse_weight = plan.reverse_weight});
    return rescored_results(rescored.value()[0]);
  }

  // Ends the utterance at hand: a segment, if something was recognised. The session is over if that failed.
  void end_utterance(Session& session, std::string why) {
    const std::int64_t frames = state->frames(session.utterance);
    if (frames > 0 && !session.search->best().empty()) {
      const std::vector<CtcResult> found = results(session);
      end_faulty();  // of rescoring
      if (session.over) return;
      StreamEvent event;
      event.kind = StreamEvent::Kind::final;
      event.utterance = session.count;
      event.time = seconds(session, frames);
      event.endpoint = std::move(why);
      event.segment = make_segment(plan, found.front(), seconds(session, 0),
                                   static_cast<double>(frames) * plan.seconds_per_frame());
      event.segment.id = session.count++;
      event.text = event.segment.text;
      session.events.push_back(std::move(event));
    }
    state->close(session.utterance);
  }

  void end_session(Session& session) {
    end_utterance(session, {});
    if (session.over) return;
    StreamEvent event;
    event.kind = StreamEvent::Kind::done;
    event.utterance = session.count;
    event.time = static_cast<double>(session.first_feature) * frame_shift();
    session.events.push_back(std::move(event));
    session.over = true;
  }

  // The step's frames, of all sessions on all threads.
  void search(std::span<Session* const> advancing) {
    context.pool->parallel_for(static_cast<std::int64_t>(advancing.size()), [&](std::int64_t i, int) {
      Session& session = *advancing[static_cast<std::size_t>(i)];
      if (!session.over) session.search->accept(state->likeliest(session.utterance));
    });
  }

  // After a step and its search: endpoint, events.
  void advance(Session& session) {
    drop_used(session);
    tell_partial(session);
    const int frames = session.search->frames();
    const auto progress = decode::progress_of(frames, session.search->trailing_frames(),
                                              session.search->trailing_frames() < frames, plan.seconds_per_frame());
    if (const auto endpoint = decode::find_endpoint(rules, progress)) {
      end_utterance(session, endpoint->why);
      if (!session.over) begin_utterance(session);
    }
  }

  static void fail(Session& session, std::string why) {
    StreamEvent event;
    event.kind = StreamEvent::Kind::failed;
    event.utterance = session.count;
    event.text = std::move(why);
    session.events.push_back(std::move(event));
    session.over = true;
  }

  // After an internal error: what is half done in the state is every session's.
  void lose_state(const std::string& why) {
    for (const auto& session : sessions) {
      if (session != nullptr && !session->over) fail(*session, why);
    }
    state.reset();
  }

  // Ends the sessions whose utterances were not finite.
  void end_faulty() {
    while (const auto fault = state->take_fault()) {
      for (const auto& session : sessions) {
        if (session == nullptr || session->over || session->utterance != fault->row) continue;
        fail(*session, fault_error(*fault).message());
        state->close(session->utterance);
      }
    }
  }

  // Sessions whose audio is over and that no step advances any more.
  void end_finished() {
    for (const auto& session : sessions) {
      if (session != nullptr && !session->over && session->finished && !prepare(*session)) end_session(*session);
    }
  }

  void step() {
    std::vector<models::UtteranceId> utterances;
    std::vector<Impl::Session*> advancing;
    for (const auto& session : sessions) {
      if (session == nullptr || !prepare(*session)) continue;
      utterances.push_back(session->utterance);
      advancing.push_back(session.get());
    }
    if (!utterances.empty()) {
      state->step(utterances, plan.tokens_of_frame());
      end_faulty();
      search(advancing);
      for (Impl::Session* session : advancing) {
        if (!session->over) advance(*session);
      }
    }
    end_finished();
  }
};

StreamingSessions::StreamingSessions(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StreamingSessions::~StreamingSessions() = default;

Result<std::unique_ptr<StreamingSessions>> StreamingSessions::create(std::shared_ptr<const models::CtcModel> model,
                                                                     const TranscribeOptions& options,
                                                                     const StreamingOptions& streaming,
                                                                     ExecContext context) {
  if (const std::string why = model->streaming_refusal(); !why.empty()) {
    return unexpected(ErrorCode::unsupported, "the model can not be streamed: " + why, {},
                      "decode whole recordings with it (leave --streaming out)");
  }
  TranscribeOptions chunked = options;
  if (chunked.ctc.chunk_size == 0) chunked.ctc.chunk_size = kStreamingChunkSize;
  auto impl = std::make_unique<Impl>();
  impl->plan = TRY(make_ctc_plan(chunked, *model));
  if (impl->plan.mode == CtcMode::attention || impl->plan.mode == CtcMode::joint) {
    return unexpected(ErrorCode::invalid_argument, "a stream has no such mode: its decoder needs the whole utterance",
                      "decode", "use attention_rescoring, ctc_prefix_beam_search or ctc_greedy_search");
  }
  if (options.vad.enabled) {
    return unexpected(ErrorCode::invalid_argument, "a stream is cut by its endpoint rules", "vad", "leave it out");
  }
  if (options.n_best > 1) {
    return unexpected(ErrorCode::invalid_argument, "a stream gives one text", "n_best", "leave it out");
  }
  impl->rules = TRY(endpoint_rules(streaming));
  impl->partial_results = streaming.partial_results;
  impl->state = TRY(model->new_state(context));
  impl->model = std::move(model);
  impl->context = context;
  return std::unique_ptr<StreamingSessions>(new StreamingSessions(std::move(impl)));
}

Result<StreamingSessions::SessionId> StreamingSessions::open(int sample_rate) {
  const FbankOptions& front_end = impl_->model->front_end();
  auto resampler = TRY(Resampler::create(sample_rate, front_end.sample_rate));
  auto fbank = TRY(Fbank::make(front_end));
  if (impl_->state == nullptr) impl_->state = TRY(impl_->model->new_state(impl_->context));
  auto session = std::make_unique<Impl::Session>(std::move(resampler), std::move(fbank));
  impl_->begin_utterance(*session);
  auto& sessions = impl_->sessions;
  const auto free = std::ranges::find_if(sessions, [](const auto& slot) { return slot == nullptr; });
  if (free == sessions.end()) {
    sessions.push_back(std::move(session));
    return static_cast<SessionId>(sessions.size()) - 1;
  }
  *free = std::move(session);
  return static_cast<SessionId>(free - sessions.begin());
}

namespace {

Unexpected no_session(const char* what) { return unexpected(ErrorCode::invalid_argument, what, "session"); }

}  // namespace

Status StreamingSessions::accept(SessionId id, std::span<const float> samples) {
  Impl::Session* session = impl_->find(id);
  if (session == nullptr) return no_session("is not open");
  if (session->finished) return no_session("was finished: it takes no more audio");
  if (session->over) return no_session("has failed: it takes no more audio");
  if (!std::ranges::all_of(samples, usable_sample)) {
    return unexpected(ErrorCode::bad_audio, fmt::format("samples are not finite, or beyond {:g}", kLoudest), "session");
  }
  session->resampled.clear();
  TRY(session->resampler.push(samples, session->resampled));
  round_to_16_bits(session->resampled);
  session->fbank.push(session->resampled, session->features);
  return {};
}

Status StreamingSessions::finish(SessionId id) {
  Impl::Session* session = impl_->find(id);
  if (session == nullptr) return no_session("is not open");
  if (session->finished) return no_session("was finished before");
  if (session->over) return no_session("has failed: there is nothing to finish");
  session->resampled.clear();
  TRY(session->resampler.finish(session->resampled));
  round_to_16_bits(session->resampled);
  session->fbank.push(session->resampled, session->features);
  session->fbank.finish(session->features);
  session->finished = true;
  return {};
}

void StreamingSessions::close(SessionId id) {
  Impl::Session* session = impl_->find(id);
  if (session == nullptr) return;
  if (!session->over) impl_->state->close(session->utterance);
  impl_->sessions[static_cast<std::size_t>(id)].reset();
}

bool StreamingSessions::ready() const {
  return std::ranges::any_of(impl_->sessions, [&](const auto& session) {
    return session != nullptr && !session->over && (impl_->prepare(*session) || session->finished);
  });
}

void StreamingSessions::step() {
  try {
    impl_->step();
  } catch (const std::exception& error) {
    impl_->lose_state(error.what());
    throw;
  }
}

std::vector<StreamEvent> StreamingSessions::take_events(SessionId id) {
  Impl::Session* session = impl_->find(id);
  return session == nullptr ? std::vector<StreamEvent>() : std::exchange(session->events, {});
}

double StreamingSessions::chunk_seconds() const {
  return impl_->plan.mask.chunk_size * impl_->plan.seconds_per_frame();
}

models::CtcState::Memory StreamingSessions::memory(SessionId id) const {
  const Impl::Session* session = impl_->find(id);
  if (session == nullptr || session->over) return {};
  models::CtcState::Memory memory = impl_->state->memory(session->utterance);
  memory.other += (session->features.capacity() + session->resampled.capacity()) * sizeof(float);
  return memory;
}

}  // namespace oasr::engine
