// The subcommands. Each adds itself to the application and, when it is chosen, its action.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace oasr::cli {

// What main runs after parsing; returns the exit status.
using Action = std::function<int()>;

void add_transcribe_command(CLI::App& app, Action& chosen);
void add_pull_command(CLI::App& app, Action& chosen);
void add_inspect_command(CLI::App& app, Action& chosen);
void add_doctor_command(CLI::App& app, Action& chosen);
void add_bench_command(CLI::App& app, Action& chosen);
void add_bench_kernels_command(CLI::App& bench, Action& chosen);  // `oasr bench kernels`
void add_convert_command(CLI::App& app, Action& chosen);
void add_quantize_command(CLI::App& app, Action& chosen);
void add_eval_command(CLI::App& app, Action& chosen);

}  // namespace oasr::cli
