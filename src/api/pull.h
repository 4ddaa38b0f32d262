// Pulling a model of any catalogue into any cache: what oasr/models.h does with the built-in ones.
#pragma once

#include <filesystem>

#include "api/catalogue.h"
#include "api/model_cache.h"
#include "oasr/models.h"

namespace oasr {

struct PullEnvironment {
  const Catalogue& catalogue;
  ModelCache cache;
  bool offline = false;                 // no use of the network
  bool plain_http_to_loopback = false;  // tests only
};

Result<std::filesystem::path> pull(const PullEnvironment& environment, std::string_view name,
                                   const PullOptions& options);

}  // namespace oasr
