// The folder of downloaded models: <cache>/models/<name>/, each with a manifest of its files.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "api/catalogue.h"
#include "base/result.h"

namespace oasr {

// One per cache folder. Entries appear complete, by one rename; readers take no lock.
class ModelCache {
 public:
  explicit ModelCache(std::filesystem::path root) : root_(std::move(root)) {}

  // OASR_CACHE_DIR, else $XDG_CACHE_HOME/oasr, else ~/.cache/oasr.
  static ModelCache of_user();

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path folder(std::string_view model) const;
  // Where a download of `source` is gathered; kept between attempts.
  std::filesystem::path staging(std::string_view model, std::string_view source) const;

  // The checkpoint's path if the manifest and every file it lists, at its size, are there.
  std::optional<std::filesystem::path> find(std::string_view model) const;

  // Compares every file with the digest in the manifest; an io error names the first that differs.
  Status verify(std::string_view model, const std::function<bool()>& cancelled) const;

  // Writes the manifest into `staging` and renames that folder into place.
  Result<std::filesystem::path> place(const ModelEntry& model, const ModelSource& source,
                                      const std::function<bool()>& cancelled);

  // Held by the process that changes a model's entry; released at the end of the object's life.
  class Lock {
   public:
    explicit Lock(int file) : file_(file) {}
    Lock(Lock&& other) noexcept;
    Lock& operator=(Lock&&) = delete;
    ~Lock();

   private:
    int file_;
  };
  // Waits while another process holds the lock; `waiting` is called once before the wait.
  Result<Lock> lock(std::string_view model, const std::function<void()>& waiting,
                    const std::function<bool()>& cancelled);

 private:
  std::filesystem::path root_;
};

// Creates a folder and those above it; an io error with the reason.
Status make_folders(const std::filesystem::path& path);

}  // namespace oasr
