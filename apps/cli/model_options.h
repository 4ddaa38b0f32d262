// Options of every command that loads a model.
#pragma once

#include <string>
#include <vector>

#include "oasr/options.h"

namespace CLI {
class App;
}

namespace oasr::cli {

// --quantization and --quantization-option.
void add_quantization_options(CLI::App& command, std::string& scheme,
                              std::vector<std::string>& options, const char* group);

// --device and --arithmetic.
void add_device_options(CLI::App& command, EngineConfig& engine, const char* group);

// "--quantization-option ignore=A module_types=B" as the option twice: a value that follows and names
// another key would be taken for an input.
std::vector<std::string> spread_quantization_options(const std::vector<std::string>& arguments);

}  // namespace oasr::cli
