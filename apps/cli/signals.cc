#include "cli/signals.h"

#include <csignal>

namespace oasr::cli {
namespace {

volatile std::sig_atomic_t received = 0;

extern "C" void on_signal(int number) { received = number; }

}  // namespace

void install_signal_handlers() {
  struct sigaction action{};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second one kills
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = SIG_IGN;
  action.sa_flags = 0;
  ::sigaction(SIGPIPE, &action, nullptr);
}

bool interrupted() { return received != 0; }

int interrupt_code() { return 128 + received; }

}  // namespace oasr::cli
