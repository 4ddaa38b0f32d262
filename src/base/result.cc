#include "base/result.h"

#include <stdexcept>

namespace oasr {

const char* error_code_name(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::not_found: return "not_found";
    case ErrorCode::io: return "io";
    case ErrorCode::bad_audio: return "bad_audio";
    case ErrorCode::bad_checkpoint: return "bad_checkpoint";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::network: return "network";
    case ErrorCode::cancelled: return "cancelled";
    case ErrorCode::internal: return "internal";
  }
  return "unknown";
}

std::string Error::message() const {
  std::string text;
  if (!where.empty()) text += where + ": ";
  text += what;
  if (!remedy.empty()) text += " (" + remedy + ")";
  return text;
}

void throw_bad_result_access(const Error& error) {
  throw std::logic_error("Result::value() on an error: " + error.message());
}

}  // namespace oasr
