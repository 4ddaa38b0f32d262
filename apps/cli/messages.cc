#include "cli/messages.h"

#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "oasr/log.h"

namespace oasr::cli {
namespace {

struct Shown {
  std::mutex mutex;
  std::set<std::string, std::less<>> warnings;
};

}  // namespace

Messages::Messages(Terminal& terminal) {
  set_message_handler([&terminal, shown = std::make_shared<Shown>()](Severity severity, std::string_view line) {
    const std::lock_guard lock(shown->mutex);
    if (severity < Severity::warning) {
      terminal.detail(line);
    } else if (shown->warnings.emplace(line).second) {  // a device may be opened several times
      terminal.warn(line);
    }
  });
}

Messages::~Messages() { set_message_handler({}); }

}  // namespace oasr::cli
