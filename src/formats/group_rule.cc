#include "formats/group_rule.h"

#include "base/check.h"

namespace oasr::formats {

const GroupRule& group_rule(ZeroDomain domain) {
  return domain == ZeroDomain::pre_scaled ? kPreScaledRule : kPostScaledRule;
}

GroupParameters group_parameters(const GroupRule& rule, double low, double high) {
  if (rule.widened) {
    low = std::min(low, 0.0);
    high = std::max(high, 0.0);
  }
  const double scale = std::max(1.0, round_even((high - low) / kMostCode));
  const double zero = rule.domain == ZeroDomain::pre_scaled
                          ? std::clamp<double>(round_even(-low / scale), 0, kMostCode) * scale
                          : std::clamp<double>(round_even(-low), -128, 127);
  return {static_cast<int>(scale), static_cast<int>(zero)};
}

bool bound_holds(const GroupRule& rule, int bound, const ByteLimits& limits) {
  const int steps = rule.integers ? 1 : 8;
  for (int low = -bound * steps; low <= bound * steps; ++low) {
    for (int high = low; high <= bound * steps; ++high) {
      const double ends[] = {static_cast<double>(low) / steps, static_cast<double>(high) / steps};
      const GroupParameters group = group_parameters(rule, ends[0], ends[1]);
      for (const double end : ends) {
        const double value = group.value(group_code(rule, group, end));
        if (value < limits.least || value > limits.most) return false;
      }
    }
  }
  return true;
}

int protective_bound(const GroupRule& rule, const ByteLimits& limits) {
  int bound = 127;
  while (bound > 0 && !bound_holds(rule, bound, limits)) --bound;
  CHECK(bound > 0, "limits that no group keeps");
  return bound;
}

}  // namespace oasr::formats
