#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/terminal.h"
#include "oasr/doctor.h"

namespace oasr::cli {
namespace {

std::string as_text(const DoctorReport& report) {
  std::string text;
  for (const auto& group : report.groups) {
    text += group.name + "\n";
    for (const auto& [name, value] : group.rows) text += fmt::format("  {:<28} {}\n", name, value);
  }
  text += "findings\n";
  if (report.findings.empty()) text += "  nothing is wrong\n";
  for (const auto& finding : report.findings) {
    text += fmt::format("  {}: {}\n    -> {}\n", finding.problem ? "problem" : "note",
                        finding.what, finding.remedy);
  }
  return text;
}

}  // namespace

void add_doctor_command(CLI::App& app, Action& chosen) {
  auto json = std::make_shared<bool>(false);
  auto* command = app.add_subcommand(
      "doctor", "Show processor, threads, memory, libraries and cache, and what is wrong");
  command->add_flag("--json", *json, "As JSON");
  command->callback([json, &chosen] {
    chosen = [json]() -> int {
      Terminal terminal;
      const auto report = doctor();
      if (!(*json ? terminal.print(to_json(report)) : terminal.print_text(as_text(report)))) {
        terminal.error(terminal.output_error().error());
        return kError;
      }
      return report.healthy() ? kOk : kError;
    };
  });
}

}  // namespace oasr::cli
