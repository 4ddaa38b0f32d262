#include "base/log.h"

#include <memory>
#include <mutex>
#include <utility>

namespace oasr {
namespace {

std::mutex& sink_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::shared_ptr<const LogSink>& current_sink() {
  static std::shared_ptr<const LogSink> sink;
  return sink;
}

}  // namespace

void set_log_sink(LogSink sink) {
  auto next = sink ? std::make_shared<const LogSink>(std::move(sink)) : nullptr;
  const std::lock_guard lock(sink_mutex());
  current_sink() = std::move(next);
}

void log(LogLevel level, std::string_view line) {
  std::shared_ptr<const LogSink> sink;
  {
    const std::lock_guard lock(sink_mutex());
    sink = current_sink();
  }
  if (sink) (*sink)(level, line);
}

}  // namespace oasr
