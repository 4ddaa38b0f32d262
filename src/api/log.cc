#include "oasr/log.h"

#include "base/log.h"

namespace oasr {
namespace {

Severity severity_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return Severity::debug;
    case LogLevel::info: return Severity::info;
    case LogLevel::warning: return Severity::warning;
    case LogLevel::error: return Severity::error;
  }
  return Severity::error;
}

}  // namespace

void set_message_handler(std::function<void(Severity, std::string_view)> handler) {
  if (!handler) {
    set_log_sink({});
    return;
  }
  set_log_sink([handler = std::move(handler)](LogLevel level, std::string_view line) {
    handler(severity_of(level), line);
  });
}

}  // namespace oasr
