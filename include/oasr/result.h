// Result<T>: a value or an Error. Errors are values; the library neither prints nor exits.
//
// The member names are std::expected's, so that a later C++ can replace this header.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace oasr {

// When to choose which: the code says what the caller can do about it.
enum class ErrorCode : std::uint8_t {
  invalid_argument,  // an option or value is wrong: change the call
  not_found,         // a file, model, language or tensor does not exist
  io,                // reading or writing failed: disk full, permission, broken pipe
  bad_audio,         // the audio can not be decoded, or holds NaN or infinity
  bad_checkpoint,    // the checkpoint is corrupt, hostile or incomplete
  unsupported,       // understood, but not served here (a Refusal)
  network,           // a download failed
  cancelled,         // the caller asked to stop
  internal,          // a bug in oasr: please report it
};

// The name of a code as it appears in JSON and messages ("bad_audio").
const char* error_code_name(ErrorCode code) noexcept;

// What went wrong, where, and what to do instead. `where` and `remedy` may be empty.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string what;    // "the file ends inside tensor 'encoder.conv1.weight'"
  std::string where;   // a path, a tensor name, a byte offset
  std::string remedy;  // "download it again"

  // One line: "where: what (remedy)".
  std::string message() const;
};

// Thrown by value() on an error, and nowhere else: reaching it is a bug of the caller.
[[noreturn]] void throw_bad_result_access(const Error& error);

// Wraps an Error on its way into a Result.
struct Unexpected {
  Error error;
};

inline Unexpected unexpected(Error error) { return Unexpected{std::move(error)}; }
inline Unexpected unexpected(ErrorCode code, std::string what, std::string where = {},
                             std::string remedy = {}) {
  return Unexpected{Error{code, std::move(what), std::move(where), std::move(remedy)}};
}

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  using error_type = Error;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Unexpected error) : state_(std::in_place_index<1>, std::move(error.error)) {}

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  T& value() & { return checked(), std::get<0>(state_); }
  const T& value() const& { return checked(), std::get<0>(state_); }
  T&& value() && { return checked(), std::get<0>(std::move(state_)); }

  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }

  Error& error() & { return std::get<1>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

  template <class U>
  T value_or(U&& other) const& {
    return has_value() ? **this : static_cast<T>(std::forward<U>(other));
  }

 private:
  void checked() const {
    if (!has_value()) throw_bad_result_access(std::get<1>(state_));
  }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  using error_type = Error;

  Result() = default;
  Result(Unexpected error) : state_(std::move(error.error)) {}

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }
  void value() const {
    if (!has_value()) throw_bad_result_access(std::get<1>(state_));
  }
  void operator*() const noexcept {}

  Error& error() & { return std::get<1>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<std::monostate, Error> state_;
};

using Status = Result<void>;

}  // namespace oasr
