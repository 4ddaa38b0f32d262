#include "api/digest.h"

#include <openssl/evp.h>

#include <array>
#include <fstream>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"

namespace oasr {
namespace {

std::string hex(std::span<const unsigned char> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const auto byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace

Result<std::string> file_digest(const std::filesystem::path& path, Digest::Kind kind,
                                const std::function<bool()>& cancelled) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(path, failed);  // fails for a pipe or a device
  std::ifstream file;
  if (!failed) file.open(path, std::ios::binary);
  if (!file || failed) return unexpected(ErrorCode::io, "can not read the file", path.string());

  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  const EVP_MD* algorithm = kind == Digest::Kind::sha256 ? EVP_sha256() : EVP_sha1();
  CHECK(context && EVP_DigestInit_ex(context.get(), algorithm, nullptr) == 1, "no digest");
  if (kind == Digest::Kind::git_sha1) {
    const auto header = "blob " + std::to_string(size);
    EVP_DigestUpdate(context.get(), header.c_str(), header.size() + 1);  // with the NUL
  }
  std::vector<char> buffer(1 << 20);
  while (file) {
    if (cancelled && cancelled()) return unexpected(ErrorCode::cancelled, "stopped");
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    EVP_DigestUpdate(context.get(), buffer.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) return unexpected(ErrorCode::io, "can not read the file", path.string());
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned length = 0;
  EVP_DigestFinal_ex(context.get(), bytes.data(), &length);
  return hex(std::span(bytes).first(length));
}

std::string text_digest(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned length = 0;
  CHECK(EVP_Digest(text.data(), text.size(), bytes.data(), &length, EVP_sha256(), nullptr) == 1, "no digest");
  return hex(std::span(bytes).first(length));
}

Status check_digest(const std::filesystem::path& path, const Digest& want,
                    const std::function<bool()>& cancelled) {
  if (want.hex.empty()) return {};
  const auto got = TRY(file_digest(path, want.kind, cancelled));
  if (got == want.hex) return {};
  return unexpected(ErrorCode::io, "its digest is " + got + ", expected " + want.hex,
                    path.string());
}

}  // namespace oasr
