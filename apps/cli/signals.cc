#include "cli/signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>

namespace oasr::cli {
namespace {

volatile std::sig_atomic_t received = 0;

extern "C" void on_signal(int number) { received = number; }

}  // namespace

void install_signal_handlers() {
  struct sigaction action{};
  action.sa_handler = on_signal;
  // The second one kills. A read of a pipe goes on: cut short it would look like truncated audio.
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  struct sigaction before{};  // nohup has a terminal that goes away ignored
  if (::sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
  action.sa_handler = SIG_IGN;
  action.sa_flags = 0;
  ::sigaction(SIGPIPE, &action, nullptr);
  ::sigaction(SIGXFSZ, &action, nullptr);  // a file that may not grow is an error of the write
}

void keep_standard_files_apart() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // Open for reading only: what is printed to a closed standard output is an error.
    if (::fcntl(file, F_GETFD) < 0) (void)::open("/dev/null", O_RDONLY);
  }
}

bool interrupted() { return received != 0; }

int interrupt_code() { return 128 + received; }

}  // namespace oasr::cli
