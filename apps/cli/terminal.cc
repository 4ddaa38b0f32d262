#include "cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace oasr::cli {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kNextLine = std::chrono::seconds(2);  // where lines can not be drawn over
constexpr int kBarWidth = 24;

// All of `text`, or the error.
Status write_all(int file, std::string_view text, const char* name) {
  while (!text.empty()) {
    const auto n = ::write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return unexpected(ErrorCode::io, std::string("can not write: ") + std::strerror(errno), name);
    }
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

// Bytes of the UTF-8 character that `text` begins with; 0 if it begins with none.
std::size_t character_length(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text[0]);
  const std::size_t length = byte < 0x80 ? 1 : byte < 0xc2 ? 0 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
  if (byte > 0xf4 || length == 0 || text.size() < length) return 0;
  const auto follows = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  return std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(length), follows) ? length
                                                                                                  : 0;
}

int terminal_width() {
  struct winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

}  // namespace

Terminal::Terminal(Verbosity verbosity, bool progress)
    : verbosity_(verbosity),
      draw_(verbosity != Verbosity::quiet && (progress || ::isatty(STDERR_FILENO) == 1)),
      to_terminal_(::isatty(STDERR_FILENO) == 1),
      width_(terminal_width()) {}

Terminal::~Terminal() { clear_progress(); }

Status Terminal::print(std::string_view text) {
  if (!output_) return output_;
  clear_progress();
  output_ = write_all(STDOUT_FILENO, text, "standard output");
  output_failed_ = !output_;
  return output_;
}

Status Terminal::print_text(std::string_view text) {
  return ::isatty(STDOUT_FILENO) == 1 ? print(escaped(text, true)) : print(text);
}

void Terminal::message(std::string_view line) {
  clear_progress();
  (void)write_all(STDERR_FILENO, escaped(line, true) + "\n", "standard error");
}

void Terminal::error(const Error& error) {
  auto shown = error;
  shown.where = escaped(error.where);
  message("oasr: error: " + shown.message());
}

void Terminal::warn(std::string_view line) {
  if (verbosity_ != Verbosity::quiet) message("oasr: warning: " + std::string(line));
}

void Terminal::note(std::string_view line) {
  if (verbosity_ != Verbosity::quiet) message("oasr: " + std::string(line));
}

void Terminal::detail(std::string_view line) {
  if (verbosity_ == Verbosity::verbose) message("oasr: " + std::string(line));
}

void Terminal::progress(std::string_view label, double done, double total, std::string_view unit) {
  const auto now = std::chrono::steady_clock::now();
  if (!draw_ || now - last_draw_ < (to_terminal_ ? kRedraw : kNextLine)) return;
  last_draw_ = now;
  std::string line;
  if (total > 0) {
    const double part = std::clamp(done / total, 0.0, 1.0);
    const int full = static_cast<int>(part * kBarWidth);
    line = fmt::format("{} {:3.0f} % [{}{}] {:.1f} of {:.1f} {}", escaped(label), part * 100,
                       std::string(static_cast<std::size_t>(full), '#'),
                       std::string(static_cast<std::size_t>(kBarWidth - full), ' '), done, total,
                       unit);
  } else {
    line = fmt::format("{} {:.1f} {}", escaped(label), done, unit);
  }
  if (!to_terminal_) {
    message(line);
    return;
  }
  line.resize(std::min(line.size(), static_cast<std::size_t>(std::max(width_ - 1, 1))));
  (void)write_all(STDERR_FILENO, "\r\x1b[K" + line, "standard error");
  drawn_ = true;
}

void Terminal::clear_progress() {
  if (!drawn_) return;
  drawn_ = false;
  (void)write_all(STDERR_FILENO, "\r\x1b[K", "standard error");
}

std::string escaped(std::string_view text, bool lines) {
  std::string shown;
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text[0]);
    const auto length = character_length(text);
    const bool control = byte < 0x20 || byte == 0x7f;
    const bool c1 = length == 2 && byte == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
    const bool keep = lines && (byte == '\n' || byte == '\t');
    if (length > 0 && (keep || (!control && !c1))) {
      shown += text.substr(0, length);
    } else {
      shown += fmt::format("\\x{:02x}", c1 ? static_cast<unsigned char>(text[1]) : byte);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return shown;
}

std::string megabytes(double bytes) { return fmt::format("{:.1f} MB", bytes / 1e6); }

}  // namespace oasr::cli
