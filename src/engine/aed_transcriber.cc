#include "engine/aed_transcriber.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "decode/search.h"
#include "engine/admission.h"
#include "engine/ahead.h"
#include "engine/front_end.h"
#include "engine/in_order.h"
#include "engine/plan.h"
#include "engine/recording.h"
#include "features/log_mel.h"
#include "features/mel_frames.h"

namespace oasr::engine {
namespace {

// A recording that is decoded now, with its audio.
struct Active {
  std::size_t index;
  std::unique_ptr<AudioSource> owned;  // empty when the caller's
  std::unique_ptr<Recording> recording;
};

// `cancelled` for threads that work for this one: it alone asks the caller, they hear what was said.
std::function<bool()> asked_by_this_thread(std::function<bool()> cancelled) {
  return [cancelled = std::move(cancelled), said = std::make_shared<std::atomic<bool>>(false),
          owner = std::this_thread::get_id()] {
    if (std::this_thread::get_id() == owner && cancelled()) *said = true;
    return said->load();
  };
}

}  // namespace

struct AedTranscriber::Impl {
  std::shared_ptr<const models::AedModel> model;
  ExecContext context;
  int batch_size = 1;
  std::unique_ptr<MelDevice> front_end;       // null: the processor
  std::unique_ptr<ThreadPool> ahead_threads;  // null: recordings are prepared between steps
  std::unique_ptr<models::AedState> state;
  int rows = 0, windows = 0;  // of `state`
  decode::ForEach for_each;   // on the pool
  decode::Stepper stepper;

  // The decoder state with room for `wanted_windows`, each with `rows_per_window` rows. It leaves
  // the transcriber while it is used: after an internal error it is dropped with its open rows.
  Result<std::unique_ptr<models::AedState>> take_state(int wanted_windows, int rows_per_window) {
    const int wanted_rows = wanted_windows * rows_per_window;
    if (state && windows >= wanted_windows && rows >= wanted_rows) return std::move(state);
    state.reset();
    windows = wanted_windows;
    rows = wanted_rows;
    return model->new_state(context, windows, rows);
  }

  // Decodes up to `limit` recordings together until `admit`, which takes up to so many, gives none any more and all
  // are over. A GPU waits for what threads prepare: a quarter of the recordings is admitted at a time, and where there are
  // threads for it the next quarter is read while the others are decoded. With a limit of one each is over before the next
  // is opened. Of `callbacks` only `cancelled` is called.
  template <class Admit>
  void run(models::AedState& decoder, std::size_t limit, const Callbacks& callbacks,
           const Admit& admit, InOrder& results) {
    std::vector<Active> active, next;
    std::vector<decode::Search*> searches;
    Ahead ahead(ahead_threads.get());
    const auto threads = static_cast<std::size_t>(context.pool->threads());
    const std::size_t at_once = context.gpu != nullptr ? std::clamp<std::size_t>(limit / 4, 1, threads) : 1;
    while (true) {
      const bool has_room = active.empty() || limit - active.size() >= at_once;
      if (has_room) {
        ahead.finish(callbacks.cancelled);
        std::ranges::move(next, std::back_inserter(active));
        next.clear();
        admit(decoder, active, active.size(), limit - active.size());
      }
      if (active.empty()) return;
      const bool stop = callbacks.cancelled && callbacks.cancelled();
      searches.clear();
      for (Active& entry : active) stop ? entry.recording->fail(cancelled_error()) : entry.recording->collect();
      prepare(active, *context.pool);
      if (has_room && ahead.has_threads() && limit > 1) {
        admit(decoder, next, active.size(), at_once);
        if (!next.empty()) ahead.start(*context.pool, [&](ThreadPool& pool) { prepare(next, pool); });
      }
      encode_together(decoder, active);
      for (Active& entry : active) {
        entry.recording->start();
        if (entry.recording->over()) {
          results.add(entry.index, entry.recording->take_result());
          entry.recording.reset();
        } else {
          searches.push_back(entry.recording->search());
        }
      }
      std::erase_if(active, [](const Active& entry) { return !entry.recording; });
      stepper.step(decoder, searches);
      fail_faulty(decoder, active);
    }
  }

  static void prepare(std::vector<Active>& recordings, ThreadPool& pool) {
    pool.parallel_for(static_cast<std::int64_t>(recordings.size()),
                      [&](std::int64_t i, int) { recordings[static_cast<std::size_t>(i)].recording->prepare(); });
  }

  // Encodes the windows that recordings wait for in one call. If numbers of one are not finite, none is kept: every
  // recording then encodes its own and learns whether it was that.
  static void encode_together(models::AedState& decoder, std::vector<Active>& active) {
    std::vector<Recording*> waiting;
    std::vector<models::MelWindow> windows;
    for (Active& entry : active) {
      const auto window = entry.recording->window_to_encode();
      if (!window) continue;
      waiting.push_back(entry.recording.get());
      windows.push_back(*window);
    }
    if (windows.size() < 2) return;
    std::vector<models::WindowId> ids(windows.size());
    decoder.encode(windows, ids);
    bool finite = true;
    while (decoder.take_fault()) finite = false;
    for (std::size_t i = 0; i < ids.size(); ++i) finite ? waiting[i]->encoded(ids[i]) : decoder.release(ids[i]);
  }

  // Ends the recordings whose rows were not finite in the last step; all, when the row is not known.
  static void fail_faulty(models::AedState& decoder, std::vector<Active>& active) {
    while (const auto fault = decoder.take_fault()) {
      for (Active& entry : active) {
        if (entry.recording->over() || (fault->row >= 0 && !entry.recording->owns(fault->row))) continue;
        entry.recording->fail(fault_error(*fault));
      }
    }
  }
};

AedTranscriber::AedTranscriber(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AedTranscriber::~AedTranscriber() = default;

Result<std::unique_ptr<Transcriber>> AedTranscriber::create(std::shared_ptr<const models::AedModel> model,
                                                            ExecContext context, int batch_size, bool reads_ahead) {
  auto impl = std::make_unique<Impl>();
  impl->front_end = TRY(open_front_end(context, whisper_recipe(model->n_mels())));
  impl->model = std::move(model);
  impl->context = context;
  impl->for_each = [pool = context.pool](std::size_t items, const auto& body) {
    pool->parallel_for(static_cast<std::int64_t>(items),
                       [&](std::int64_t i, int) { body(static_cast<std::size_t>(i)); });
  };
  impl->stepper = decode::Stepper(impl->for_each);
  impl->batch_size = batch_size;
  if (reads_ahead && context.pool->threads() > 1) impl->ahead_threads = threads_beside(*context.pool);
  return std::unique_ptr<Transcriber>(new AedTranscriber(std::move(impl)));
}

Result<Transcript> AedTranscriber::transcribe(AudioSource& audio, const TranscribeOptions& options,
                                              const Callbacks& callbacks) {
  const Plan plan = TRY(make_plan(options, *impl_->model));
  auto decoder = TRY(impl_->take_state(1, plan.rows));
  std::optional<Result<Transcript>> transcript;
  const Done done = [&](std::size_t, Result<Transcript> result) { transcript = std::move(result); };
  InOrder results(done);
  bool admitted = false;
  const auto admit = [&](models::AedState& state, std::vector<Active>& active, std::size_t, std::size_t) {
    if (std::exchange(admitted, true)) return;
    auto recording = std::make_unique<Recording>(plan, audio, callbacks, state, impl_->front_end.get());
    active.push_back({0, nullptr, std::move(recording)});
  };
  impl_->run(*decoder, 1, callbacks, admit, results);
  impl_->state = std::move(decoder);
  return std::move(*transcript);
}

void AedTranscriber::transcribe_many(std::size_t count, const OpenAudio& open,
                                     const TranscribeOptions& options, const Callbacks& callbacks,
                                     const Done& done) {
  auto plan = make_plan(options, *impl_->model);
  const auto limit = std::min(count, static_cast<std::size_t>(impl_->batch_size));
  Result<std::unique_ptr<models::AedState>> decoder =
      plan ? impl_->take_state(std::max(1, static_cast<int>(limit)), plan->rows)
           : Result<std::unique_ptr<models::AedState>>(unexpected(plan.error()));
  if (!decoder) {
    for (std::size_t i = 0; i < count; ++i) done(i, unexpected(decoder.error()));
    return;
  }
  double finished = 0;  // seconds of the recordings that are over
  Callbacks each;
  if (callbacks.cancelled) each.cancelled = asked_by_this_thread(callbacks.cancelled);
  if (count == 1) each = callbacks;
  const Done counted = [&](std::size_t index, Result<Transcript> result) {
    if (result) finished += result->duration;
    if (callbacks.progress && count > 1) callbacks.progress(finished, 0);
    done(index, std::move(result));
  };
  InOrder results(counted);
  Admission admission(count, open, callbacks, *impl_->context.pool, results);
  const auto admit = [&](models::AedState& state, std::vector<Active>& to, std::size_t open_now, std::size_t wanted) {
    for (auto& [index, audio] : admission.next(wanted, open_now)) {
      auto recording = std::make_unique<Recording>(*plan, *audio, each, state, impl_->front_end.get());
      to.push_back({index, std::move(audio), std::move(recording)});
    }
  };
  impl_->run(**decoder, limit, each, admit, results);
  impl_->state = std::move(*decoder);
}

TranscribeOptions AedTranscriber::resolved(const TranscribeOptions& options) const {
  TranscribeOptions all = options;
  all.beam_size = options.beam_size.value_or(1);
  return all;
}

}  // namespace oasr::engine
