#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/bench_parts.h"
#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/kernel_report.h"
#include "cli/layer_table.h"
#include "cli/messages.h"
#include "cli/model_options.h"
#include "cli/pull_command.h"
#include "cli/signals.h"
#include "cli/streaming_bench.h"
#include "cli/terminal.h"
#include "oasr/models.h"
#include "oasr/recognizer.h"
#include "oasr/version.h"

namespace oasr::cli {
namespace {

struct BenchArguments {
  EngineConfig engine;
  TranscribeOptions options;
  std::vector<std::string> audio;
  int repeat = 3;
  bool json = false, no_fallback = false, per_layer = false;
  bool streaming = false;
  int sessions = 1;
};

// One pass over one recording, or over all of them together.
struct Pass {
  double audio_seconds = 0, wall = 0, cpu = 0;
  Timings timings;  // of this pass
  std::string text;
  std::size_t without_text = 0;  // recordings
};

Timings difference(const Timings& after, const Timings& before) {
  Timings d = after;
  d.encode_seconds -= before.encode_seconds;
  d.windows -= before.windows;
  d.prompt_seconds -= before.prompt_seconds;
  d.prompts -= before.prompts;
  d.step_seconds -= before.step_seconds;
  d.steps -= before.steps;
  d.step_rows -= before.step_rows;
  d.feature_seconds -= before.feature_seconds;
  d.search_seconds -= before.search_seconds;
  d.rescore_seconds -= before.rescore_seconds;
  d.utterances -= before.utterances;
  d.searched_on_gpu -= before.searched_on_gpu;
  d.launches = launches_between(after.launches, before.launches);
  d.encode_launches = launches_between(after.encode_launches, before.encode_launches);
  d.prompt_launches = launches_between(after.prompt_launches, before.prompt_launches);
  d.step_launches = launches_between(after.step_launches, before.step_launches);
  return d;
}

double per(double seconds, std::int64_t count) {
  return count > 0 ? 1e3 * seconds / static_cast<double>(count) : 0;
}

// What is shown of a recording: medians over the passes.
nlohmann::ordered_json summary(const std::string& audio, const std::vector<Pass>& passes) {
  const auto of = [&](auto value) {
    std::vector<double> all;
    for (const auto& pass : passes) all.push_back(value(pass));
    return median(std::move(all));
  };
  const double wall = of([](const Pass& p) { return p.wall; });
  const double seconds = passes.front().audio_seconds;
  const Timings& first = passes.front().timings;
  nlohmann::ordered_json row = {{"audio", audio},
                                {"audio_seconds", seconds},
                                {"repeat", passes.size()},
                                {"wall_seconds", wall},
                                {"cpu_seconds", of([](const Pass& p) { return p.cpu; })},
                                {"real_time_factor", seconds > 0 ? wall / seconds : 0}};
  if (first.utterances > 0) {  // a CTC model
    row["utterances"] = first.utterances;
    row["searched_on_gpu"] = first.searched_on_gpu;
    row["features_ms"] = of([](const Pass& p) { return 1e3 * p.timings.feature_seconds; });
    row["encoder_ms"] = of([](const Pass& p) { return 1e3 * p.timings.encode_seconds; });
    row["search_ms"] = of([](const Pass& p) { return 1e3 * p.timings.search_seconds; });
    row["rescoring_ms"] = of([](const Pass& p) { return 1e3 * p.timings.rescore_seconds; });
  } else {
    row["windows"] = first.windows;
    row["tokens"] = first.step_rows;
    row["encoder_ms_per_window"] = of([](const Pass& p) { return per(p.timings.encode_seconds, p.timings.windows); });
    row["prompt_ms"] = of([](const Pass& p) { return per(p.timings.prompt_seconds, p.timings.prompts); });
    row["decoder_ms_per_token"] = of([](const Pass& p) { return per(p.timings.step_seconds, p.timings.step_rows); });
    row["steps"] = first.steps;
    row["decoder_ms_per_step"] = of([](const Pass& p) { return per(p.timings.step_seconds, p.timings.steps); });
    row["other_ms"] = of([](const Pass& p) {  // audio, features, searches, text
      return 1e3 * (p.wall - p.timings.encode_seconds - p.timings.prompt_seconds - p.timings.step_seconds);
    });
  }
  if (const Timings& last = passes.back().timings; last.launches.kernels > 0) row["launches"] = launches_json(last);
  row["text"] = passes.front().text;
  return row;
}

std::string row_text(const nlohmann::ordered_json& row) {
  const auto number = [&](const char* key) { return row[key].get<double>(); };
  const bool ctc = row.contains("utterances");
  auto text = fmt::format(
      "\n{}\n  audio    {:.1f} s, {}, median of {}\n"
      "  time     {:.3f} s wall, {:.3f} s CPU, real-time factor {:.4f}\n",
      row["audio"].get<std::string>(), number("audio_seconds"),
      ctc ? fmt::format("{} utterances", row["utterances"].get<int>())
          : fmt::format("{} windows, {} tokens", row["windows"].get<int>(), row["tokens"].get<int>()),
      row["repeat"].get<int>(), number("wall_seconds"), number("cpu_seconds"), number("real_time_factor"));
  if (ctc) {
    text += fmt::format("  features {:.2f} ms\n  encoder  {:.1f} ms\n  search   {:.2f} ms\n  rescore  {:.2f} ms\n",
                        number("features_ms"), number("encoder_ms"), number("search_ms"), number("rescoring_ms"));
  } else {
    text += fmt::format("  encoder  {:.1f} ms a window\n  prompt   {:.2f} ms\n  decoder  {:.2f} ms a token, {:.2f} ms a step\n"
                        "  other    {:.1f} ms: audio, features, searches\n",
                        number("encoder_ms_per_window"), number("prompt_ms"), number("decoder_ms_per_token"),
                        number("decoder_ms_per_step"), number("other_ms"));
  }
  if (row.contains("launches")) text += launches_text(row["launches"]);
  if (row.contains("recordings") && row["without_text"].get<int>() > 0) {
    text += fmt::format("  no text  {} recordings\n", row["without_text"].get<int>());
  }
  return row.contains("recordings") ? text : text + fmt::format("  text    {}\n", row["text"].get<std::string>());
}

std::string as_text(const nlohmann::ordered_json& report) {
  auto text = bench_head(report);
  for (const auto& row : report["audio"]) text += row_text(row);
  if (report.contains("layers")) text += "\n" + layer_table_text(report);
  return text;
}

bool has_text(const Transcript& transcript) { return transcript.text.find_first_not_of(" \n") != std::string::npos; }

// A measurement without any text could look fast: it is an error.
Unexpected no_text(const std::string& where) {
  return unexpected(ErrorCode::bad_audio, "gave no text: nothing was measured", where, "use a recording with speech");
}

Result<Pass> run_pass(Recognizer& recognizer, const std::string& path,
                      const TranscribeOptions& options) {
  AudioInput input;
  input.path = path;
  Callbacks callbacks;
  callbacks.cancelled = interrupted;
  const auto before = recognizer.timings();
  const Clock clock;
  auto transcript = recognizer.transcribe(input, options, callbacks);
  Pass pass{0, clock.wall(), clock.cpu(), difference(recognizer.timings(), before), {}};
  if (!transcript) return unexpected(transcript.error());
  if (!has_text(*transcript)) return no_text(path);
  pass.audio_seconds = transcript->duration;
  pass.text = transcript->text;
  return pass;
}

// All recordings, arguments.engine.batch_size of them decoded together; the text is that of all. Some may have
// none, and are counted.
Result<Pass> run_batch(Recognizer& recognizer, const BenchArguments& arguments) {
  std::vector<AudioInput> inputs(arguments.audio.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i].path = arguments.audio[i];
  Callbacks callbacks;
  callbacks.cancelled = interrupted;
  const auto before = recognizer.timings();
  Pass pass;
  std::optional<Error> error;
  const Clock clock;
  recognizer.transcribe_batch(inputs, arguments.options, [&](std::size_t i, Result<Transcript> transcript) {
    if (!transcript) {
      if (!error) error = transcript.error();
      if (error->where.empty()) error->where = arguments.audio[i];
      return;
    }
    pass.audio_seconds += transcript->duration;
    pass.text += transcript->text + "\n";
    if (!has_text(*transcript)) ++pass.without_text;
  }, callbacks);
  pass.wall = clock.wall();
  pass.cpu = clock.cpu();
  pass.timings = difference(recognizer.timings(), before);
  if (error) return unexpected(*error);
  if (pass.without_text == inputs.size()) return no_text("all recordings");
  return pass;
}

// `run()` arguments.repeat times; what each pass gives must be the same text.
template <class Run>
Result<std::vector<Pass>> repeated(const BenchArguments& arguments, const std::string& name, const Run& run) {
  std::vector<Pass> passes;
  for (int i = 0; i < arguments.repeat; ++i) {
    Result<Pass> pass = run();
    if (!pass) return unexpected(pass.error());
    if (!passes.empty() && pass->text != passes.front().text) {
      return unexpected(ErrorCode::internal, "the text differs between two passes", name);
    }
    passes.push_back(std::move(*pass));
  }
  return passes;
}

// A row a recording, or one for all.
Result<nlohmann::ordered_json> measure_passes(Recognizer& recognizer, const BenchArguments& arguments) {
  auto rows = nlohmann::ordered_json::array();
  if (const int together = arguments.engine.batch_size; together > 1) {
    const std::string name = fmt::format("{} recordings, {} at a time", arguments.audio.size(), together);
    const auto passes = repeated(arguments, name, [&] { return run_batch(recognizer, arguments); });
    if (!passes) return unexpected(passes.error());
    rows.push_back(summary(name, *passes));
    rows.back()["recordings"] = arguments.audio.size();
    rows.back()["without_text"] = passes->front().without_text;
    rows.back()["batch_size"] = together;
    return rows;
  }
  for (const auto& path : arguments.audio) {
    const auto passes = repeated(arguments, path, [&] { return run_pass(recognizer, path, arguments.options); });
    if (!passes) return unexpected(passes.error());
    rows.push_back(summary(path, *passes));
  }
  return rows;
}

// One more pass over the first recording, or all together, with every layer timed.
Status add_layers(Recognizer& recognizer, const BenchArguments& arguments, nlohmann::ordered_json& report) {
  recognizer.measure_layers(true);
  const auto pass = arguments.engine.batch_size > 1
                        ? run_batch(recognizer, arguments)
                        : run_pass(recognizer, arguments.audio.front(), arguments.options);
  recognizer.measure_layers(false);
  if (!pass) return unexpected(pass.error());
  const auto& model = report["model"];
  if (model["device"] == "cpu") {
    report["layers"] = layer_table(recognizer.layer_times(), model["threads"].get<int>());
    return {};
  }
  const auto& device = arguments.engine.device;
  const auto ceilings = measure_ceilings(device == "auto" ? "cuda" : device);
  if (!ceilings) return unexpected(ceilings.error());
  report["ceilings"] = ceilings_json(*ceilings, true);
  report["layers"] = layer_table(recognizer.layer_times(), *ceilings);
  return {};
}

Result<nlohmann::ordered_json> measure(const BenchArguments& arguments, const std::string& model) {
  auto config = arguments.engine;
  config.model = model;
  const Clock clock;
  auto recognizer = Recognizer::load(config);
  if (!recognizer) return unexpected(recognizer.error());
  nlohmann::ordered_json report = {
      {"oasr", version()},
      {"model", nlohmann::ordered_json::parse(recognizer->report(), nullptr, false)},
      {"load_seconds", clock.wall()},
      {"load_cpu_seconds", clock.cpu()}};
  auto rows = measure_passes(*recognizer, arguments);
  if (!rows) return unexpected(rows.error());
  report["peak_mib"] = peak_mib();
  if (arguments.per_layer) {
    if (auto good = add_layers(*recognizer, arguments, report); !good) return unexpected(good.error());
  }
  report["audio"] = std::move(*rows);
  return report;
}

Result<nlohmann::ordered_json> measure_streams(const BenchArguments& arguments, const std::string& model) {
  StreamingBench bench{.engine = arguments.engine, .options = arguments.options, .audio = arguments.audio,
                       .repeat = arguments.repeat, .sessions = arguments.sessions};
  bench.engine.model = model;
  return measure_streaming(bench);
}

Status check_arguments(const BenchArguments& arguments) {
  if (arguments.audio.empty()) {
    return unexpected(ErrorCode::invalid_argument, "is required", "--audio",
                      "name recordings with speech, or measure single operations: oasr bench kernels");
  }
  if (arguments.streaming && arguments.per_layer) {
    return unexpected(ErrorCode::invalid_argument, "does not go with --streaming", "--per-layer",
                      "measure layers of whole utterances, with --chunk-size for their mask");
  }
  if (arguments.streaming && arguments.engine.batch_size != 1) {
    return unexpected(ErrorCode::invalid_argument, "does not go with --streaming", "--batch-size",
                      "--sessions says how many streams there are");
  }
  if (!arguments.streaming && arguments.sessions != 1) {
    return unexpected(ErrorCode::invalid_argument, "needs --streaming", "--sessions");
  }
  return {};
}

int run_bench(BenchArguments& arguments) {
  Terminal terminal;
  if (auto good = check_arguments(arguments); !good) return end_with(good.error(), terminal);
  if (arguments.no_fallback) arguments.options.temperatures.resize(1);
  if (auto good = check_options(arguments.engine, arguments.options, {}); !good) {
    return end_with(as_command_line(good.error()), terminal);
  }
  const Messages messages(terminal);
  auto model = resolve_model(arguments.engine.model);
  if (!model && in_catalogue(arguments.engine.model)) {
    model = pull_with_progress(arguments.engine.model, terminal);
  }
  const auto report = !model                ? Result<nlohmann::ordered_json>(unexpected(model.error()))
                      : arguments.streaming ? measure_streams(arguments, *model)
                                            : measure(arguments, *model);
  if (!report) return end_with(report.error(), terminal);
  const auto text = arguments.json ? report->dump(2, ' ', false,
                                                  nlohmann::json::error_handler_t::replace) + "\n"
                    : arguments.streaming ? streaming_bench_text(*report)
                                          : as_text(*report);
  if (arguments.json ? terminal.print(text) : terminal.print_text(text)) return kOk;
  terminal.error(terminal.output_error().error());
  return kError;
}

}  // namespace

void add_bench_command(CLI::App& app, Action& chosen) {
  auto a = std::make_shared<BenchArguments>();
  a->engine.model = default_model();
  auto* command = app.add_subcommand("bench", "Measure load, encoder, decoder and memory; streams of CTC models; single kernels");
  command->add_option("model", a->engine.model, "Path, or a name of the catalogue")
      ->type_name("MODEL")->capture_default_str();
  command->add_option("--audio", a->audio, "Recordings with speech, at least one")->type_name("AUDIO");
  command->add_option("--repeat", a->repeat, "Passes; medians are shown")
      ->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_option("--batch-size", a->engine.batch_size, "Above 1: recordings decoded together, measured as one")
      ->capture_default_str();
  command->add_option("-t,--threads", a->engine.threads, "0: what the cgroup quota allows");
  command->add_option("--dtype", a->engine.dtype, "Weights: auto, float32, float16, bfloat16");
  command->add_option("-l,--language", a->options.language, "Code or English name; auto detects");
  command->add_option("--beam-size", a->options.beam_size, "1: greedy")
      ->check(CLI::PositiveNumber);
  command->add_option("--decode", a->options.ctc.decode, "Mode of a CTC model [attention_rescoring]")
      ->type_name("MODE");
  command->add_option("--chunk-size", a->options.ctc.chunk_size,
                      "Of a CTC model: encoder frames seen together [0: all; 16 with --streaming]");
  command->add_option("--num-left-chunks", a->options.ctc.num_left_chunks, "Of a CTC model; -1: all");
  command->add_flag("--streaming", a->streaming, "Latency, cost of a chunk, memory of streams of a CTC model");
  command->add_option("--sessions", a->sessions, "With --streaming: streams at the same time")
      ->check(CLI::Range(1, 10'000))->capture_default_str();
  command->add_flag("--no-fallback", a->no_fallback, "Only temperature 0");
  command->add_flag("!--no-timestamps", a->options.timestamps, "Text only");
  command->add_flag("!--no-condition-on-previous-text", a->options.condition_on_previous_text,
                    "Windows do not see the text before them");
  add_device_options(*command, a->engine, "OPTIONS");
  add_quantization_options(*command, a->engine.quantization, a->engine.quantization_options,
                           "Quantization");
  command->add_flag("--per-layer", a->per_layer,
                    "With the time and the speed of every layer, and its share of the peak, on a GPU of its roof");
  command->add_flag("--json", a->json, "As JSON");
  command->require_subcommand(0, 1);
  add_bench_kernels_command(*command, chosen);
  command->callback([a, command, &chosen] {
    if (command->get_subcommands().empty()) chosen = [a] { return run_bench(*a); };
  });
}

}  // namespace oasr::cli
