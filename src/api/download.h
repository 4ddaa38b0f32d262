// One file over HTTPS, resumed where an earlier attempt stopped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "api/catalogue.h"
#include "base/result.h"

namespace oasr {

struct DownloadRequest {
  std::string url;
  std::filesystem::path part;        // what is there already is kept and continued
  std::uint64_t bytes = 0;           // of the whole file; 0: not known
  bool plain_http_to_loopback = false;  // tests serve from 127.0.0.1
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
  std::function<bool()> cancelled;
};

struct DownloadResult {
  bool resumed = false;   // bytes of an earlier attempt are part of the file
  Digest announced;       // what the server says of the content (its strong ETag); may be empty
};

// Downloads `url` to `part`. HTTPS only, redirects too (5 at most); 10 s to connect, and stalls of
// 30 s are errors. Errors: network (name, connection, TLS, status, size), io, cancelled. After an
// error `part` holds what arrived.
Result<DownloadResult> download_file(const DownloadRequest& request);

}  // namespace oasr
