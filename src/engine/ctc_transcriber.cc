#include "engine/ctc_transcriber.h"

#include <algorithm>
#include <limits>
#include <new>

#include <fmt/format.h>

#include "base/log.h"
#include "base/stopwatch.h"
#include "decode/attention_beam.h"
#include "device/gpu.h"
#include "engine/admission.h"
#include "engine/ahead.h"
#include "engine/ctc_recording.h"
#include "engine/fault_error.h"
#include "engine/front_end.h"
#include "engine/in_order.h"
#include "features/mel_frames.h"

namespace oasr::engine {
namespace {

// A recording that is decoded now, with its audio.
struct ActiveCtc {
  std::size_t index = 0;
  std::unique_ptr<AudioSource> owned;  // empty when the caller's
  std::unique_ptr<CtcRecording> recording;
  std::optional<Result<std::optional<CtcUtterance>>> next;  // what it said: not in a pass yet
};

// An utterance on its way through one pass.
struct InFlight {
  CtcRecording* recording = nullptr;  // null: it has failed
  CtcUtterance utterance;
  models::UtteranceId id = 0;
  std::vector<decode::CtcHypothesis> hypotheses;  // of the first pass
  std::vector<CtcResult> results;
  bool searched_on_gpu = false;
};
using Pass = std::span<InFlight>;

}  // namespace

struct CtcTranscriber::Impl {
  std::shared_ptr<const models::CtcModel> model;
  ExecContext context;
  int batch_size = 1;
  std::unique_ptr<models::CtcState> state;
  std::unique_ptr<MelDevice> front_end;        // null: the processor
  std::unique_ptr<ThreadPool> ahead_threads;   // null: utterances are prepared between passes
  double most_seconds = 0;                     // of audio, that memory holds together as far as the call knows
  StageTimes times;

  // Of what prepares utterances.
  ThreadPool& reading_threads() const { return ahead_threads ? *ahead_threads : *context.pool; }

  Status open_state() {
    if (state == nullptr) state = TRY(model->new_state(context));
    return {};
  }

  // Takes up to so many recordings from `admit` until it gives none, and decodes an utterance of each at a time.
  // After an internal error the state goes, with the utterances that are open in it and what is half done.
  template <class Admit>
  void run(const CtcPlan& plan, std::size_t limit, const Callbacks& callbacks, const Admit& admit,
           InOrder& results) {
    most_seconds = std::numeric_limits<double>::infinity();
    try {
      decode_all(plan, limit, callbacks, admit, results);
    } catch (...) {
      state.reset();
      throw;
    }
  }

  // While a pass is decoded the utterances of the next one are prepared, of as many recordings as it may take; without
  // threads for that, before it. With a limit of one each recording is over before the next is opened.
  template <class Admit>
  void decode_all(const CtcPlan& plan, std::size_t limit, const Callbacks& callbacks, const Admit& admit,
                  InOrder& results) {
    std::vector<ActiveCtc> active;
    std::vector<InFlight> pass;
    Ahead ahead(ahead_threads.get());
    while (true) {
      const std::size_t waiting = active.size() - pass.size();
      if (active.empty() || limit > 1) admit(active, limit - waiting);
      if (active.empty()) return;
      if (callbacks.cancelled && callbacks.cancelled()) {
        for (const ActiveCtc& entry : active) results.add(entry.index, unexpected(cancelled_error()));
        active.clear();
        pass.clear();
        continue;
      }
      ahead.start(*context.pool, [&](ThreadPool& threads) { prepare(active, threads); });
      decode(plan, pass);
      ahead.finish(callbacks.cancelled);
      settle(active, results);
      pass = next_pass(active, limit);
      if (ahead.has_threads()) continue;
      decode(plan, pass);
      pass.clear();
      settle(active, results);
    }
  }

  // Asks recordings for their next utterance, unless one waits already.
  void prepare(std::vector<ActiveCtc>& active, ThreadPool& threads) {
    const Stopwatch watch(times.features);
    const auto next = [&](std::int64_t i, int) {
      ActiveCtc& entry = active[static_cast<std::size_t>(i)];
      if (!entry.next) entry.next = entry.recording->next();
    };
    if (active.size() == 1) {
      next(0, 0);  // the threads are its own
    } else {
      threads.parallel_for(static_cast<std::int64_t>(active.size()), next);
    }
  }

  // Gives out the recordings that are over.
  static void settle(std::vector<ActiveCtc>& active, InOrder& results) {
    for (ActiveCtc& entry : active) {
      if (!entry.recording->has_failed() && entry.next && !*entry.next) entry.recording->fail(std::move(*entry.next).error());
      if (!entry.recording->has_failed() && !(entry.next && !**entry.next)) continue;
      results.add(entry.index, entry.recording->take_result());
      entry.recording.reset();
    }
    std::erase_if(active, [](const ActiveCtc& entry) { return !entry.recording; });
  }

  // Of up to `limit` of the utterances that wait.
  static std::vector<InFlight> next_pass(std::vector<ActiveCtc>& active, std::size_t limit) {
    std::vector<InFlight> pass;
    for (ActiveCtc& entry : active) {
      if (pass.size() == limit) break;
      pass.push_back({.recording = entry.recording.get(),
                      .utterance = std::move(**std::exchange(entry.next, std::nullopt)).value(),
                      .id = 0,
                      .hypotheses = {},
                      .results = {},
                      .searched_on_gpu = false});
    }
    return pass;
  }

  // In as many parts as memory asks for: what a part gives does not depend on the others. A part that finds none is
  // halved, and later ones are as small; an utterance that finds none by itself ends its recording.
  void decode(const CtcPlan& plan, Pass pass) {
    while (!pass.empty()) {
      const Pass part = part_of(pass);
      const std::optional<Error> lack = lacking_memory([&] { decode_part(plan, part); });
      if (lack && part.size() > 1) {
        most_seconds = seconds_of(part) / 2;
        log(LogLevel::warning, fmt::format("{}: up to {:.0f} s of audio are decoded together", lack->what, most_seconds));
        continue;
      }
      for (InFlight& utterance : part) {
        if (lack) fail(utterance, *lack);
        if (utterance.recording != nullptr) utterance.recording->take(utterance.utterance, utterance.results);
      }
      times.utterances += std::ssize(part);
      times.searched_on_gpu += std::ranges::count(part, true, &InFlight::searched_on_gpu);
      pass = pass.subspan(part.size());
    }
  }

  static double seconds_of(Pass pass) {
    double seconds = 0;
    for (const InFlight& utterance : pass) seconds += utterance.utterance.duration;
    return seconds;
  }

  // The first ones that may go together, one at least.
  Pass part_of(Pass pass) const {
    std::size_t count = 1;
    while (count < pass.size() && seconds_of(pass.first(count + 1)) <= most_seconds) ++count;
    return pass.first(count);
  }

  // Runs `body`. What it lacked, if it found no memory: then the state went, with what was open in it.
  template <class Body>
  std::optional<Error> lacking_memory(const Body& body) {
    try {
      body();
      return std::nullopt;
    } catch (const GpuOutOfMemory& error) {
      state.reset();
      return Error{ErrorCode::unsupported, error.what(), "device", "use another GPU, or --device cpu"};
    } catch (const std::bad_alloc&) {
      state.reset();
      return Error{ErrorCode::internal, "out of memory", {}, {}};
    }
  }

  void decode_part(const CtcPlan& plan, Pass pass) {
    if (const Status opened = open_state(); !opened) {
      for (InFlight& utterance : pass) fail(utterance, opened.error());
      return;
    }
    encode(plan, pass);
    {
      const Stopwatch watch(times.search);
      by_attention(plan) ? search_by_attention(plan, pass) : search(plan, pass);
    }
    if (plan.mode == CtcMode::attention_rescoring) {
      rescore(plan, pass);
    } else if (!by_attention(plan)) {
      for (InFlight& utterance : pass) utterance.results = first_pass_results(utterance.hypotheses);
    }
    fail_faulty(pass);
    for (const InFlight& utterance : pass) {
      times.frames += state->frames(utterance.id);
      state->close(utterance.id);
    }
  }

  static void fail(InFlight& utterance, Error error) {
    if (utterance.recording != nullptr) utterance.recording->fail(std::move(error));
    utterance.recording = nullptr;
  }

  static bool by_attention(const CtcPlan& plan) {
    return plan.mode == CtcMode::attention || plan.mode == CtcMode::joint;
  }

  void encode(const CtcPlan& plan, Pass pass) {
    for (InFlight& utterance : pass) {
      utterance.id = state->open(plan.mask, true);
      state->accept(utterance.id, utterance.utterance.features);
      state->finish(utterance.id);
    }
    std::vector<models::UtteranceId> ids;
    for (const InFlight& utterance : pass) ids.push_back(utterance.id);
    {
      const Stopwatch watch(times.encode);
      const int width = plan.tokens_of_frame();
      width > 0 ? state->step(ids, width) : state->step(ids);
    }
    fail_faulty(pass);
  }

  // The first pass of all utterances.
  void search(const CtcPlan& plan, Pass pass) {
    for (InFlight& utterance : pass) utterance.searched_on_gpu = false;
    if (search_on_gpu(plan, pass)) return;
    context.pool->parallel_for(static_cast<std::int64_t>(pass.size()), [&](std::int64_t i, int) {
      InFlight& utterance = pass[static_cast<std::size_t>(i)];
      if (utterance.recording == nullptr) return;
      CtcSearch search = CtcSearch::make(plan).value();  // the plan's options are checked
      search.accept(state->likeliest(utterance.id));
      utterance.hypotheses = search.hypotheses();
    });
  }

  // A GPU searches all utterances in the time of the longest, which threads have searched six in each by then
  // (bench/gpu/ctc.cc: an H200 beside 16 threads of its host).
  bool search_on_gpu(const CtcPlan& plan, Pass pass) {
    if (plan.mode == CtcMode::ctc_greedy_search || static_cast<int>(pass.size()) <= 6 * context.pool->threads()) {
      return false;
    }
    std::vector<InFlight*> heard;
    std::vector<models::UtteranceId> ids;
    for (InFlight& utterance : pass) {
      if (utterance.recording == nullptr) continue;
      heard.push_back(&utterance);
      ids.push_back(utterance.id);
    }
    std::vector<std::vector<decode::CtcHypothesis>> hypotheses(ids.size());
    if (ids.empty() || !state->search(ids, plan.prefix_beam(), hypotheses)) return false;
    for (std::size_t i = 0; i < heard.size(); ++i) {
      heard[i]->hypotheses = std::move(hypotheses[i]);
      heard[i]->searched_on_gpu = true;
    }
    return true;
  }

  void rescore(const CtcPlan& plan, Pass pass) {
    const Stopwatch watch(times.rescore);
    std::vector<InFlight*> heard;
    std::vector<decode::RescoringInput> inputs;
    for (InFlight& utterance : pass) {
      if (utterance.recording == nullptr) continue;
      heard.push_back(&utterance);
      inputs.push_back({.utterance = utterance.id, .hypotheses = utterance.hypotheses});
    }
    const auto rescored =
        decode::rescore(*state, inputs, {.ctc_weight = plan.ctc_weight, .reverse_weight = plan.reverse_weight});
    for (std::size_t i = 0; i < heard.size(); ++i) heard[i]->results = rescored_results(rescored.value()[i]);
  }

  void search_by_attention(const CtcPlan& plan, Pass pass) {
    for (InFlight& utterance : pass) {
      utterance.results.clear();
      if (utterance.recording != nullptr) search_by_attention(plan, utterance);
    }
  }

  // By the left-to-right decoder, alone or with CTC's prefix scores. Tokens have no times of their own:
  // they share the utterance evenly.
  void search_by_attention(const CtcPlan& plan, InFlight& utterance) {
    const auto frames = static_cast<int>(state->frames(utterance.id));
    const models::CtcTokens& ids = model->tokens();
    const auto decoder = state->open_decoder(utterance.id, plan.beam_size, frames + 1);
    decode::AttentionBeamOptions options{.beam_size = plan.beam_size, .max_new_tokens = frames};
    if (plan.mode == CtcMode::joint) {
      options.ctc = state->scores(utterance.id);
      options.ctc_weight = plan.ctc_weight;
    }
    std::vector<decode::RowId> rows;
    for (int row = 0; row < plan.beam_size; ++row) rows.push_back(row);
    const std::vector<TokenId> prompt = {ids.sos};
    const decode::LogitRules rules;
    decode::AttentionBeam beam({.prompt = prompt, .probe_index = {}, .eot = ids.eos}, options, rules, rows);
    decode::Stepper().run(*decoder, beam);
    for (const auto& found : beam.nbest()) {
      CtcResult result{.tokens = {}, .score = found.score, .confidence = 0};
      for (std::size_t i = 0; i < found.tokens.size(); ++i) {
        const int frame = static_cast<int>(static_cast<std::size_t>(frames) * (i + 1) / (found.tokens.size() + 1));
        result.tokens.push_back({.id = found.tokens[i], .frame = frame, .confidence = 0});
      }
      utterance.results.push_back(std::move(result));
    }
  }

  // Ends the recordings whose utterances were not finite: they have no recording afterwards.
  void fail_faulty(Pass pass) {
    while (const auto fault = state->take_fault()) {
      for (InFlight& utterance : pass) {
        if (utterance.id == fault->row) fail(utterance, fault_error(*fault));
      }
    }
  }
};

CtcTranscriber::CtcTranscriber(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CtcTranscriber::~CtcTranscriber() = default;

Result<std::unique_ptr<Transcriber>> CtcTranscriber::create(std::shared_ptr<const models::CtcModel> model,
                                                            ExecContext context, int batch_size,
                                                            bool reads_ahead) {
  auto impl = std::make_unique<Impl>();
  const MelRecipe recipe = TRY(fbank_recipe(model->front_end()));
  impl->front_end = TRY(open_front_end(context, recipe));
  impl->model = std::move(model);
  impl->context = context;
  impl->batch_size = batch_size;
  if (reads_ahead && context.pool->threads() > 1) impl->ahead_threads = threads_beside(*context.pool);
  TRY(impl->open_state());
  return std::unique_ptr<Transcriber>(new CtcTranscriber(std::move(impl)));
}

TranscribeOptions CtcTranscriber::resolved(const TranscribeOptions& options) const {
  TranscribeOptions all = options;
  const auto plan = make_ctc_plan(options, *impl_->model);
  if (!plan) return all;
  all.ctc.decode = enum_name(ctc_mode_names(), plan->mode);
  all.beam_size = plan->mode == CtcMode::ctc_greedy_search ? 1 : plan->beam_size;
  if (plan->mode == CtcMode::attention_rescoring || plan->mode == CtcMode::joint) all.ctc.ctc_weight = plan->ctc_weight;
  if (plan->mode == CtcMode::attention_rescoring) all.ctc.reverse_weight = plan->reverse_weight;
  return all;
}

StageTimes CtcTranscriber::stage_times() const { return impl_->times; }

Result<Transcript> CtcTranscriber::transcribe(AudioSource& audio, const TranscribeOptions& options,
                                              const Callbacks& callbacks) {
  const CtcPlan plan = TRY(make_ctc_plan(options, *impl_->model));
  TRY(impl_->open_state());
  std::optional<Result<Transcript>> transcript;
  const Done done = [&](std::size_t, Result<Transcript> result) { transcript = std::move(result); };
  InOrder results(done);
  bool admitted = false;
  const auto admit = [&](std::vector<ActiveCtc>& active, std::size_t) {
    if (std::exchange(admitted, true)) return;
    auto recording = std::make_unique<CtcRecording>(plan, audio, callbacks, impl_->front_end.get(),
                                                    impl_->reading_threads());
    active.push_back({0, nullptr, std::move(recording), {}});
  };
  impl_->run(plan, 1, callbacks, admit, results);
  return std::move(*transcript);
}

void CtcTranscriber::transcribe_many(std::size_t count, const OpenAudio& open, const TranscribeOptions& options,
                                     const Callbacks& callbacks, const Done& done) {
  const auto plan = make_ctc_plan(options, *impl_->model);
  const Status ready = plan ? impl_->open_state() : Status(unexpected(plan.error()));
  if (!ready) {
    for (std::size_t i = 0; i < count; ++i) done(i, unexpected(ready.error()));
    return;
  }
  double finished = 0;  // seconds of the recordings that are over
  const Callbacks each = count == 1 ? callbacks : Callbacks{.progress = {}, .segment = {}, .cancelled = callbacks.cancelled};
  const Done counted = [&](std::size_t index, Result<Transcript> result) {
    if (result) finished += result->duration;
    if (callbacks.progress && count > 1) callbacks.progress(finished, 0);
    done(index, std::move(result));
  };
  InOrder results(counted);
  Admission admission(count, open, callbacks, *impl_->context.pool, results);
  const auto admit = [&](std::vector<ActiveCtc>& active, std::size_t wanted) {
    for (auto& [index, audio] : admission.next(wanted, active.size())) {
      auto recording = std::make_unique<CtcRecording>(*plan, *audio, each, impl_->front_end.get(), impl_->reading_threads());
      active.push_back({index, std::move(audio), std::move(recording), {}});
    }
  };
  impl_->run(*plan, static_cast<std::size_t>(impl_->batch_size), callbacks, admit, results);
}

}  // namespace oasr::engine
