// A token and what it is worth.
#pragma once

#include "text/token_id.h"

namespace oasr::decode {

struct ScoredToken {
  TokenId token = 0;
  float logit = 0;
};

}  // namespace oasr::decode
