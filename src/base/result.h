// The library's Result, with TRY for early return.
#pragma once

#include "oasr/result.h"

namespace oasr::detail {

template <class T>
T unwrap(Result<T>&& result) {
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace oasr::detail

// The value of a Result, or an early return of its error from the enclosing function:
//   auto header = TRY(read_header(file));
// Not inside a braced list or among the arguments of a call: with g++ the early return leaks what was
// made before it there.
#define TRY(expression)                                                          \
  __extension__({                                                                \
    auto&& oasr_try_result = (expression);                                       \
    if (!oasr_try_result) return ::oasr::unexpected(std::move(oasr_try_result).error()); \
    ::oasr::detail::unwrap(std::move(oasr_try_result));                          \
  })
