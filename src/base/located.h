// Errors that learn where they happened.
#pragma once

#include <string>

#include "base/result.h"

namespace oasr {

// `result` with its error's location set to `where`, if it has none.
template <class T>
Result<T> located(Result<T> result, const std::string& where) {
  if (!result && result.error().where.empty()) result.error().where = where;
  return result;
}

}  // namespace oasr
