#include "cli/streaming_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/bench_parts.h"
#include "cli/signals.h"
#include "oasr/streaming.h"
#include "oasr/version.h"

namespace oasr::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kPiecesPerSecond = 50;

struct Recording {
  std::string path;
  std::vector<float> samples;
  double seconds = 0;
  double speech = 0;  // where the first speech is, seconds
};

// Where speech begins: the first 10 ms whose level is within 30 dB of the loudest 10 ms.
double speech_start(std::span<const float> samples, int rate) {
  const auto width = static_cast<std::size_t>(rate / 100);
  std::vector<double> energies;
  for (std::size_t at = 0; at + width <= samples.size(); at += width) {
    double sum = 0;
    for (const float sample : samples.subspan(at, width)) sum += double{sample} * double{sample};
    energies.push_back(sum);
  }
  if (energies.empty()) return 0;
  const double least = *std::max_element(energies.begin(), energies.end()) * 1e-3;
  const auto found = std::find_if(energies.begin(), energies.end(), [&](double e) { return e >= least; });
  return static_cast<double>(found - energies.begin()) * 0.01;
}

// A stream as its user sees it.
struct Stream {
  StreamingRecognizer::Session id = 0;
  const Recording* recording = nullptr;
  int start = 0;            // the tick of its first piece
  std::size_t given = 0;    // samples
  bool finished = false, done = false;
  double first_partial = -1;  // virtual seconds since its first sample
  double first_partial_audio = -1;  // the same, without the time to compute
  double end = 0;           // virtual seconds since its first sample, of `done`
  std::string text;
  std::size_t caches = 0, other = 0;  // the most memory seen, bytes
};

struct Run {
  double wall = 0, cpu = 0;
  std::vector<double> steps;  // ms of every step
  std::vector<double> lags;   // ms from the end of the audio that an event tells of to the event
  std::vector<Stream> streams;
  int tick = 0;               // the next one; audio of 20 ms is there at its end
  double now = 0;             // the virtual clock, seconds

  double arrival() const { return static_cast<double>(tick + 1) / kPiecesPerSecond; }
};

Status take_events(StreamingRecognizer& recognizer, Run& run, Stream& stream) {
  const double now = run.now - static_cast<double>(stream.start) / kPiecesPerSecond;
  for (const StreamEvent& event : recognizer.take_events(stream.id)) {
    if (event.kind == StreamEvent::Kind::failed) return unexpected(ErrorCode::bad_checkpoint, event.text);
    if (event.kind == StreamEvent::Kind::done) {
      stream.done = true;
      stream.end = now;
      continue;
    }
    run.lags.push_back(1e3 * (now - event.time));
    if (stream.first_partial < 0) {
      stream.first_partial = now;
      stream.first_partial_audio = static_cast<double>(stream.given) / recognizer.sample_rate();
    }
    if (event.kind == StreamEvent::Kind::final) stream.text += (stream.text.empty() ? "" : " ") + event.text;
  }
  return {};
}

// The next 20 ms of a stream, or its end.
Status feed(StreamingRecognizer& recognizer, Stream& stream) {
  const auto piece = static_cast<std::size_t>(recognizer.sample_rate() / kPiecesPerSecond);
  const std::span<const float> rest = std::span(stream.recording->samples).subspan(stream.given);
  const std::size_t count = std::min(piece, rest.size());
  if (auto good = recognizer.accept(stream.id, rest.first(count)); !good) return good;
  stream.given += count;
  if (count < rest.size()) return {};
  stream.finished = true;
  return recognizer.finish(stream.id);
}

// All audio that is there by now, then one step over all streams; without one, waits for audio.
Status advance(StreamingRecognizer& recognizer, Run& run) {
  const Clock all;
  for (; run.arrival() <= run.now; ++run.tick) {
    for (Stream& stream : run.streams) {
      if (stream.finished || run.tick < stream.start) continue;
      if (auto good = feed(recognizer, stream); !good) return good;
    }
  }
  const Clock step;
  const bool stepped = recognizer.step();
  if (stepped) run.steps.push_back(1e3 * step.wall());
  const double wall = all.wall();
  run.cpu += all.cpu();
  run.wall += wall;
  run.now += wall;
  for (Stream& stream : run.streams) {
    if (stream.done || run.tick <= stream.start) continue;
    const auto [caches, other] = recognizer.memory(stream.id);
    stream.caches = std::max(stream.caches, caches);
    stream.other = std::max(stream.other, other);
    if (auto good = take_events(recognizer, run, stream); !good) return good;
  }
  if (!stepped) run.now = std::max(run.now, run.arrival());
  return {};
}

// Plays recordings[i % n] in `count` streams, which begin evenly over a chunk, to their ends.
Result<Run> play(StreamingRecognizer& recognizer, std::span<const Recording> recordings, int count) {
  Run run;
  const int chunk = std::max(1, static_cast<int>(std::lround(recognizer.chunk_seconds() * kPiecesPerSecond)));
  for (int i = 0; i < count; ++i) {
    auto session = recognizer.open(recognizer.sample_rate());
    if (!session) return unexpected(session.error());
    Stream stream;
    stream.id = *session;
    stream.recording = &recordings[static_cast<std::size_t>(i) % recordings.size()];
    stream.start = static_cast<int>(static_cast<std::int64_t>(i) * chunk / count);
    run.streams.push_back(std::move(stream));
  }
  run.now = run.arrival();
  Status status;
  const auto over = [](const Stream& stream) { return stream.done; };
  while (status && !std::all_of(run.streams.begin(), run.streams.end(), over)) {
    status = interrupted() ? Status(unexpected(ErrorCode::cancelled, "stopped")) : advance(recognizer, run);
  }
  for (const Stream& stream : run.streams) recognizer.close(stream.id);
  if (!status) return unexpected(status.error());
  return run;
}

Json spread(const std::vector<double>& values) {
  return {{"median", median(values)}, {"p90", percentile(values, 90)}, {"p99", percentile(values, 99)},
          {"max", percentile(values, 100)}};
}

// A recording alone: medians over the passes, chunks of all of them.
Result<Json> alone(StreamingRecognizer& recognizer, const Recording& recording, int repeat, std::string& text) {
  std::vector<Run> runs;
  std::vector<double> steps;
  for (int i = 0; i < repeat; ++i) {
    auto run = play(recognizer, {&recording, 1}, 1);
    if (!run) return unexpected(run.error());
    if (run->streams[0].text.empty()) {
      return unexpected(ErrorCode::bad_audio, "gave no text: nothing was measured", recording.path,
                        "use a recording with speech");
    }
    if (!runs.empty() && run->streams[0].text != runs[0].streams[0].text) {
      return unexpected(ErrorCode::internal, "the text differs between two passes", recording.path);
    }
    steps.insert(steps.end(), run->steps.begin(), run->steps.end());
    runs.push_back(std::move(*run));
  }
  const auto of = [&](auto value) {
    std::vector<double> all;
    for (const Run& run : runs) all.push_back(value(run));
    return median(std::move(all));
  };
  const Stream& first = runs[0].streams[0];
  text = first.text;
  const double wall = of([](const Run& run) { return run.wall; });
  return Json{{"audio", recording.path},
              {"audio_seconds", recording.seconds},
              {"repeat", repeat},
              {"speech_begins_seconds", recording.speech},
              {"first_partial_audio_seconds", first.first_partial_audio - recording.speech},
              {"first_partial_seconds", of([&](const Run& r) { return r.streams[0].first_partial; }) - recording.speech},
              {"after_end_ms", of([&](const Run& r) { return 1e3 * (r.streams[0].end - recording.seconds); })},
              {"chunks", runs[0].steps.size()},
              {"chunk_ms", spread(steps)},
              {"wall_seconds", wall},
              {"cpu_seconds", of([](const Run& run) { return run.cpu; })},
              {"real_time_factor", wall / recording.seconds},
              {"kv_cache_bytes", first.caches},
              {"other_bytes", first.other},
              {"text", text}};
}

Result<Json> together(StreamingRecognizer& recognizer, std::span<const Recording> recordings,
                      std::span<const std::string> texts, int count) {
  auto run = play(recognizer, recordings, count);
  if (!run) return unexpected(run.error());
  double seconds = 0, caches = 0, other = 0;
  std::vector<double> latencies;
  for (std::size_t i = 0; i < run->streams.size(); ++i) {
    const Stream& stream = run->streams[i];
    if (stream.text != texts[i % texts.size()]) {
      return unexpected(ErrorCode::internal, "the text differs beside other streams", stream.recording->path);
    }
    seconds += stream.recording->seconds;
    caches += static_cast<double>(stream.caches) / count;
    other += static_cast<double>(stream.other) / count;
    latencies.push_back(stream.first_partial - stream.recording->speech);
  }
  return Json{{"count", count},
              {"audio_seconds", seconds},
              {"wall_seconds", run->wall},
              {"cpu_seconds", run->cpu},
              {"ms_per_audio_second", 1e3 * run->wall / seconds},
              {"real_time_streams", seconds / run->wall},
              {"steps", run->steps.size()},
              {"step_ms", spread(run->steps)},
              {"lag_ms", spread(run->lags)},
              {"first_partial_seconds", spread(latencies)},
              {"kv_cache_bytes", caches},
              {"other_bytes", other}};
}

Result<std::vector<Recording>> read_recordings(const StreamingRecognizer& recognizer,
                                               const std::vector<std::string>& paths) {
  std::vector<Recording> recordings;
  for (const std::string& path : paths) {
    AudioInput input;
    input.path = path;
    auto samples = recognizer.read(input);
    if (!samples) return unexpected(samples.error());
    Recording recording;
    recording.path = path;
    recording.seconds = static_cast<double>(samples->size()) / recognizer.sample_rate();
    recording.speech = speech_start(*samples, recognizer.sample_rate());
    recording.samples = std::move(*samples);
    recordings.push_back(std::move(recording));
  }
  return recordings;
}

std::string spread_text(const Json& row, const char* format) {
  std::string text;
  for (const char* key : {"median", "p90", "p99", "max"}) {
    text += fmt::format("{}{} ", text.empty() ? "" : ", ", key) + fmt::format(fmt::runtime(format), row[key].get<double>());
  }
  return text;
}

std::string mib_text(const Json& row) {
  return fmt::format("{:.2f} MiB of keys and values, {:.2f} MiB beside", row["kv_cache_bytes"].get<double>() / 1048576,
                     row["other_bytes"].get<double>() / 1048576);
}

}  // namespace

Result<Json> measure_streaming(const StreamingBench& bench) {
  const Clock clock;
  auto recognizer = StreamingRecognizer::load(bench.engine, bench.options);
  if (!recognizer) return unexpected(recognizer.error());
  Json report = {{"oasr", version()},
                 {"model", Json::parse(recognizer->report(), nullptr, false)},
                 {"load_seconds", clock.wall()},
                 {"load_cpu_seconds", clock.cpu()},
                 {"chunk_seconds", recognizer->chunk_seconds()}};
  const auto recordings = read_recordings(*recognizer, bench.audio);
  if (!recordings) return unexpected(recordings.error());
  std::vector<std::string> texts(recordings->size());
  auto rows = Json::array();
  for (std::size_t i = 0; i < recordings->size(); ++i) {
    auto row = alone(*recognizer, (*recordings)[i], bench.repeat, texts[i]);
    if (!row) return unexpected(row.error());
    rows.push_back(std::move(*row));
  }
  report["audio"] = std::move(rows);
  report["peak_mib_of_one"] = peak_mib();
  if (bench.sessions > 1) {
    auto row = together(*recognizer, *recordings, texts, bench.sessions);
    if (!row) return unexpected(row.error());
    report["sessions"] = std::move(*row);
  }
  report["peak_mib"] = peak_mib();
  return report;
}

std::string streaming_bench_text(const Json& report) {
  auto text = bench_head(report) + fmt::format("chunk      {:.2f} s\n", report["chunk_seconds"].get<double>());
  const auto number = [](const Json& row, const char* key) { return row[key].get<double>(); };
  for (const Json& row : report["audio"]) {
    text += fmt::format(
        "\n{}\n  audio    {:.1f} s, speech from {:.2f} s, median of {}\n"
        "  partial  {:.2f} s of speech before the first, {:.3f} s with the time to compute it\n"
        "  end      {:.1f} ms after the audio\n  chunk    ms: {} ({} chunks)\n"
        "  time     {:.3f} s wall, {:.3f} s CPU, real-time factor {:.4f}\n  memory   {}\n  text     {}\n",
        row["audio"].get<std::string>(), number(row, "audio_seconds"), number(row, "speech_begins_seconds"),
        row["repeat"].get<int>(), number(row, "first_partial_audio_seconds"), number(row, "first_partial_seconds"),
        number(row, "after_end_ms"), spread_text(row["chunk_ms"], "{:.1f}"), row["chunks"].get<int>(),
        number(row, "wall_seconds"), number(row, "cpu_seconds"), number(row, "real_time_factor"), mib_text(row),
        row["text"].get<std::string>());
  }
  if (!report.contains("sessions")) return text;
  const Json& row = report["sessions"];
  return text + fmt::format(
                    "\n{} sessions at the same time\n  audio    {:.1f} s\n"
                    "  time     {:.3f} s wall, {:.3f} s CPU, {:.2f} ms a second of audio\n"
                    "  holds    {:.1f} streams at the pace of speech\n  step     ms: {} ({} steps)\n"
                    "  lag      ms behind the audio: {}\n  partial  s: {}\n  memory   a session: {}\n",
                    row["count"].get<int>(), number(row, "audio_seconds"), number(row, "wall_seconds"),
                    number(row, "cpu_seconds"), number(row, "ms_per_audio_second"), number(row, "real_time_streams"),
                    spread_text(row["step_ms"], "{:.1f}"), row["steps"].get<int>(),
                    spread_text(row["lag_ms"], "{:.0f}"), spread_text(row["first_partial_seconds"], "{:.2f}"),
                    mib_text(row));
}

}  // namespace oasr::cli
