// The folder that a checkpoint is written to: it appears complete, in place of another one if asked for, or not
// at all.
#pragma once

#include <filesystem>
#include <optional>

#include "base/result.h"

namespace oasr::quantize {

inline constexpr const char* kReportJson = "quantization_report.json";
inline constexpr const char* kReportHtml = "quantization_report.html";

class Destination {
 public:
  // Makes a folder for drafts beside `folder`; it goes with this object. Errors (invalid_argument): `folder`
  // is a link, is `source`, or inside it or around it; it exists and is not empty, unless `force` and it is a folder
  // with an oasr checkpoint and nothing else (which is not ours to delete); io.
  static Result<Destination> open(const std::filesystem::path& folder, const std::filesystem::path& source,
                                  bool force);
  Destination(Destination&& other) noexcept;
  Destination& operator=(Destination&&) = delete;
  ~Destination();

  // For a folder that does not exist yet.
  std::filesystem::path draft(const char* name) const { return drafts_ / name; }
  // Renames a draft to the destination, in exchange with a checkpoint that was there. What has appeared
  // since open() is looked at as open() does.
  Status commit(const std::filesystem::path& draft);

 private:
  Destination(std::filesystem::path folder, std::filesystem::path drafts, bool force)
      : folder_(std::move(folder)), drafts_(std::move(drafts)), force_(force) {}
  std::filesystem::path folder_, drafts_;
  bool force_;
};

}  // namespace oasr::quantize
