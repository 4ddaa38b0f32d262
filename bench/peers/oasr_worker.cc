// Runs oasr for bench/peers/peers.py and tools/score.py: the same protocol as engines.py.
//
//   oasr_peer_worker MODEL DTYPE|SCHEME[:OPTION…] THREADS
//
// One JSON object a line on standard input, {"audio": path, "timestamps": bool, "single_window":
// bool}; one a line back. The last key is for tools/score.py: the reference's path for short clips.
// {"audio": path, "family": "ctc"} for models with a CTC head (u2pp_peers.py): the defaults, and the seconds
// of the parts beside the rest.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "oasr/recognizer.h"
#include "oasr/version.h"

namespace {

double wall_seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Of this program: ru_maxrss would begin at what the process that started it held.
double peak_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::atof(line.c_str() + 6) / 1024.0;
  }
  return 0;
}

void reply(const nlohmann::json& line) { std::cout << line.dump() << std::endl; }

int fail(const oasr::Error& error) {
  reply({{"error", error.message()}});
  return 1;
}

// Greedy, no fallback, no previous text, no gating: what the peers are asked to do.
oasr::TranscribeOptions plain_options(const nlohmann::json& job) {
  oasr::TranscribeOptions options;
  if (job.value("family", "") == "ctc") return options;
  options.language = "en";
  options.temperatures = {0.0};
  options.condition_on_previous_text = false;
  options.timestamps = job.at("timestamps").get<bool>();
  options.single_window = job.value("single_window", false);
  options.silence_dbfs = std::nullopt;
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: oasr_peer_worker MODEL DTYPE|SCHEME[:OPTION…] THREADS\n";
    return 2;
  }
  oasr::EngineConfig config;
  config.model = argv[1];
  std::istringstream numbers(argv[2]);  // "float16", "int8_w8a8:ignore=*.fc2"
  std::string word;
  std::getline(numbers, word, ':');
  (word.starts_with("int8") ? config.quantization : config.dtype) = word;
  while (std::getline(numbers, word, ':')) config.quantization_options.push_back(word);
  config.threads = std::atoi(argv[3]);
  config.download = false;
  const double start = wall_seconds();
  auto recognizer = oasr::Recognizer::load(config);
  if (!recognizer) return fail(recognizer.error());
  reply({{"load", wall_seconds() - start}, {"version", std::string("oasr ") + oasr::version()}});

  for (std::string line; std::getline(std::cin, line);) {
    const auto job = nlohmann::json::parse(line);
    oasr::AudioInput audio;
    audio.path = job.at("audio").get<std::string>();
    const oasr::Timings before = recognizer->timings();
    const double wall = wall_seconds();
    const double cpu = cpu_seconds();
    double first = 0;
    oasr::Callbacks callbacks;
    callbacks.segment = [&](const oasr::Segment&) {
      if (first == 0) first = wall_seconds() - wall;
    };
    const auto result = recognizer->transcribe(audio, plain_options(job), callbacks);
    if (!result) return fail(result.error());
    const double spent = wall_seconds() - wall;
    const oasr::Timings after = recognizer->timings();
    reply({{"text", result->text},
           {"wall", spent},
           {"cpu", cpu_seconds() - cpu},
           {"first", first},
           {"features", after.feature_seconds - before.feature_seconds},
           {"encode", after.encode_seconds - before.encode_seconds},
           {"search", after.search_seconds - before.search_seconds},
           {"rescore", after.rescore_seconds - before.rescore_seconds},
           {"peak_mib", peak_mib()}});
  }
  return 0;
}
