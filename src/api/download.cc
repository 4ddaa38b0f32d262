#include "api/download.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "oasr/version.h"

namespace oasr {
namespace {

constexpr long kConnectSeconds = 10;
constexpr long kStallSeconds = 30;
constexpr long kStallBytesPerSecond = 1000;
constexpr long kRedirects = 5;

// The state of one transfer, handed to libcurl's callbacks.
struct Transfer {
  const DownloadRequest& request;
  CURL* curl = nullptr;
  int file = -1;
  std::uint64_t kept = 0;      // bytes of earlier attempts
  std::uint64_t written = 0;   // bytes in the file
  bool body_started = false;
  std::string etag, linked_etag;
  std::string write_error;
  bool stopped = false;

  explicit Transfer(const DownloadRequest& r) : request(r) {}
  ~Transfer() {
    if (file >= 0) ::close(file);
    if (curl != nullptr) curl_easy_cleanup(curl);
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
};

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n\"");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n\"") - first + 1));
}

std::size_t on_header(char* data, std::size_t, std::size_t size, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::string_view line(data, size);
  const auto value_of = [&](std::string_view name) -> std::string {
    if (line.size() <= name.size() || line[name.size()] != ':') return {};
    if (::strncasecmp(line.data(), name.data(), name.size()) != 0) return {};
    return trimmed(line.substr(name.size() + 1));
  };
  // The first hop knows the content; storage behind a redirect has ETags of its own.
  if (auto value = value_of("x-linked-etag"); !value.empty() && transfer.linked_etag.empty()) {
    transfer.linked_etag = value;
  }
  if (auto value = value_of("etag"); !value.empty() && transfer.etag.empty()) {
    transfer.etag = value;
  }
  return size;
}

// A server that ignores the range sends the whole file again: start over.
bool start_body(Transfer& transfer) {
  transfer.body_started = true;
  long status = 0;
  curl_easy_getinfo(transfer.curl, CURLINFO_RESPONSE_CODE, &status);
  if (transfer.kept > 0 && status == 200) {
    if (::ftruncate(transfer.file, 0) != 0) return false;
    transfer.kept = transfer.written = 0;
  }
  return ::lseek(transfer.file, 0, SEEK_END) >= 0;
}

std::size_t on_body(char* data, std::size_t, std::size_t size, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  std::size_t done = 0;
  if (transfer.body_started || start_body(transfer)) {
    while (done < size) {
      const auto n = ::write(transfer.file, data + done, size - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) break;
      done += static_cast<std::size_t>(n);
    }
  }
  if (done < size) transfer.write_error = std::strerror(errno);
  transfer.written += done;
  return done;
}

int on_progress(void* user, curl_off_t total, curl_off_t, curl_off_t, curl_off_t) {
  auto& transfer = *static_cast<Transfer*>(user);
  const auto& request = transfer.request;
  if (request.cancelled && request.cancelled()) {
    transfer.stopped = true;
    return 1;
  }
  if (request.progress && transfer.body_started) {
    const auto known = total > 0 ? static_cast<std::uint64_t>(total) + transfer.kept : 0;
    request.progress(transfer.written, request.bytes != 0 ? request.bytes : known);
  }
  return 0;
}

void set_options(Transfer& transfer, const std::string& range) {
  CURL* curl = transfer.curl;
  const auto& url = transfer.request.url;
  const bool loopback =
      transfer.request.plain_http_to_loopback && url.rfind("http://127.0.0.1:", 0) == 0;
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, loopback ? "http" : "https");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, loopback ? "http" : "https");
  if (loopback) curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kRedirects);
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, kStallBytesPerSecond);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kStallSeconds);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, (std::string("oasr/") + version()).c_str());
  if (!range.empty()) curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
}

// An ETag that is a digest: SHA-256 of large files, SHA-1 of the git blob of small ones.
Digest announced_digest(const std::string& etag) {
  if (etag.find_first_not_of("0123456789abcdef") != std::string::npos) return {};
  if (etag.size() == 64) return {Digest::Kind::sha256, etag};
  if (etag.size() == 40) return {Digest::Kind::git_sha1, etag};
  return {};
}

Status open_part(Transfer& transfer) {
  const auto& path = transfer.request.part;
  transfer.file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  struct stat info{};
  if (transfer.file < 0 || ::fstat(transfer.file, &info) != 0) {
    return unexpected(ErrorCode::io, std::string("can not create the file: ") + std::strerror(errno),
                      path.string());
  }
  transfer.kept = transfer.written = static_cast<std::uint64_t>(info.st_size);
  if (transfer.request.bytes != 0 && transfer.kept > transfer.request.bytes) {
    transfer.kept = transfer.written = 0;
    if (::ftruncate(transfer.file, 0) != 0) {
      return unexpected(ErrorCode::io, "can not empty the file", path.string());
    }
  }
  return {};
}

Unexpected failure(const Transfer& transfer, CURLcode code, const char* detail) {
  const auto& request = transfer.request;
  if (transfer.stopped) return unexpected(ErrorCode::cancelled, "stopped");
  if (!transfer.write_error.empty()) {
    return unexpected(ErrorCode::io, "can not write: " + transfer.write_error,
                      request.part.string(), "free some space or set OASR_CACHE_DIR");
  }
  std::string what = *detail != '\0' ? detail : curl_easy_strerror(code);
  return unexpected(ErrorCode::network, what, request.url);
}

}  // namespace

Result<DownloadResult> download_file(const DownloadRequest& request) {
  static const bool ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  CHECK(ready, "libcurl does not start");
  Transfer transfer(request);
  TRY(open_part(transfer));
  if (request.bytes != 0 && transfer.kept == request.bytes) return DownloadResult{true, {}};

  transfer.curl = curl_easy_init();
  CHECK(transfer.curl != nullptr, "libcurl does not start");
  char detail[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(transfer.curl, CURLOPT_ERRORBUFFER, detail);
  set_options(transfer, transfer.kept > 0 ? std::to_string(transfer.kept) + "-" : "");
  auto code = curl_easy_perform(transfer.curl);
  long status = 0;
  curl_easy_getinfo(transfer.curl, CURLINFO_RESPONSE_CODE, &status);
  if (status == 416) {  // nothing is left to send: the digest tells whether it is the whole file
    code = CURLE_OK;
  }
  if (code != CURLE_OK) return failure(transfer, code, detail);
  if (request.bytes != 0 && transfer.written != request.bytes) {
    return unexpected(ErrorCode::network,
                      "got " + std::to_string(transfer.written) + " bytes of " +
                          std::to_string(request.bytes),
                      request.url);
  }
  const auto& etag = transfer.linked_etag.empty() ? transfer.etag : transfer.linked_etag;
  return DownloadResult{transfer.kept > 0, announced_digest(etag)};
}

}  // namespace oasr
