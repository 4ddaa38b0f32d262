// Messages of the library: it prints nothing itself.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace oasr {

enum class Severity : std::uint8_t { debug, info, warning, error };

// Receives every message of the library, one line without a line end, possibly from several
// threads. Replaces the handler before it; an empty one drops the messages (as at the start).
void set_message_handler(std::function<void(Severity, std::string_view line)> handler);

}  // namespace oasr
