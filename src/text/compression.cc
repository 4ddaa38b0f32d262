#include "text/compression.h"

#include <zlib.h>

#include <vector>

#include "base/check.h"

namespace oasr {

double compression_ratio(std::string_view utf8) {
  uLongf size = compressBound(static_cast<uLong>(utf8.size()));
  std::vector<Bytef> compressed(size);
  const int status = compress(compressed.data(), &size, reinterpret_cast<const Bytef*>(utf8.data()),
                              static_cast<uLong>(utf8.size()));
  CHECK(status == Z_OK, "zlib has room and memory");
  return static_cast<double>(utf8.size()) / static_cast<double>(size);
}

}  // namespace oasr
