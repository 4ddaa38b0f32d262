// The log sink: the library hands lines over, the application decides where they go.
#pragma once

#include <functional>
#include <string_view>

namespace oasr {

enum class LogLevel { debug, info, warning, error };

using LogSink = std::function<void(LogLevel, std::string_view)>;

// Replaces the process-wide sink; an empty sink (the default) drops everything. Thread-safe.
void set_log_sink(LogSink sink);

// Hands one line, without a line end, to the sink. Thread-safe.
void log(LogLevel level, std::string_view line);

}  // namespace oasr
