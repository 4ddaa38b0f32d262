#include "quantize/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <type_traits>

namespace oasr::quantize {
namespace {

Unexpected refuse(std::string what, std::string remedy = {}) {
  return unexpected(ErrorCode::invalid_argument, std::move(what), "budget", std::move(remedy));
}

// "40M" as 40e6.
std::optional<double> parse_value(std::string_view text, bool suffixes) {
  double factor = 1;
  if (suffixes && !text.empty()) {
    const auto at = std::string_view("KMG").find(text.back());
    if (at != std::string_view::npos) {
      factor = std::pow(1000.0, static_cast<double>(at + 1));
      text.remove_suffix(1);
    }
  }
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value * factor;
}

// The items as shares of what is to be saved of bytes and ms; a limit that is met already, or is none, has no
// part in it.
class Cover {
 public:
  Cover(std::span<const BudgetItem> items, const ModelCost& full, const Budget& budget) : items_(items) {
    std::vector<double> saved(items.size());
    if (budget.bytes && full.bytes > *budget.bytes) {
      std::ranges::transform(items, saved.begin(),
                             [](const BudgetItem& i) { return static_cast<double>(i.bytes_saved); });
      add(saved, static_cast<double>(full.bytes - *budget.bytes));
    }
    if (budget.ms && full.ms > *budget.ms) {
      std::ranges::transform(items, saved.begin(), &BudgetItem::ms_saved);
      add(saved, full.ms - *budget.ms);
    }
    chosen_.resize(items.size());
  }

  // False: not even all layers save enough.
  bool solve() {
    while (!met(open())) {
      const std::size_t best = cheapest();
      if (best == items_.size()) return false;
      chosen_[best] = true;
    }
    while (improve()) {
    }
    return true;
  }

  const std::vector<bool>& chosen() const { return chosen_; }

  // No cover has less effect: that of a cover with fractions of layers, of either limit alone.
  double least_effect() const {
    double least = 0;
    for (const auto& share : shares_) {
      std::vector<std::size_t> order;
      for (std::size_t i = 0; i < items_.size(); ++i) {
        if (!barred(i) && share[i] > 0) order.push_back(i);
      }
      std::ranges::stable_sort(order, {}, [&](std::size_t i) { return items_[i].effect / share[i]; });
      double open = 1, effect = 0;
      for (const std::size_t i : order) {
        const double part = std::min(1.0, open / share[i]);
        effect += part * items_[i].effect;
        open -= part * share[i];
        if (open <= 0) break;
      }
      least = std::max(least, effect);
    }
    return least;
  }

 private:
  void add(const std::vector<double>& saved, double wanted) {
    shares_.push_back(saved);
    for (double& share : shares_.back()) share /= wanted;
  }
  bool barred(std::size_t item) const {
    return std::ranges::any_of(shares_, [&](const auto& share) { return share[item] < 0; });
  }
  // What is still to be saved, by limit.
  std::vector<double> open() const {
    std::vector<double> shares;
    for (const auto& share : shares_) {
      double sum = 0;
      for (std::size_t i = 0; i < share.size(); ++i) sum += chosen_[i] ? share[i] : 0;
      shares.push_back(1 - sum);
    }
    return shares;
  }
  // Whether that is nothing, perhaps with one more layer. Rounding of the shares neither makes a limit nor
  // breaks it.
  bool met(const std::vector<double>& open, std::optional<std::size_t> more = {}) const {
    for (std::size_t k = 0; k < open.size(); ++k) {
      if (open[k] - (more ? shares_[k][*more] : 0) > 1e-12) return false;
    }
    return true;
  }

  // The layer with the least effect for what it saves of what is open; the number of items: none saves any.
  std::size_t cheapest() const {
    std::size_t best = items_.size();
    double least = std::numeric_limits<double>::infinity();
    const std::vector<double> wanted = open();
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (chosen_[i] || barred(i)) continue;
      double gain = 0;
      for (std::size_t k = 0; k < wanted.size(); ++k)
        gain += std::min(shares_[k][i], std::max(0.0, wanted[k]));
      if (gain > 0 && items_[i].effect / gain < least) {
        least = items_[i].effect / gain;
        best = i;
      }
    }
    return best;
  }

  // Leaves a layer out, or exchanges it for one of less effect: what lowers the effect most. False: nothing
  // does.
  bool improve() {
    double most = 0;
    std::size_t out = 0, in = 0;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (!chosen_[i]) continue;
      chosen_[i] = false;
      const std::vector<double> wanted = open();
      chosen_[i] = true;
      if (items_[i].effect > most && met(wanted))
        std::tie(most, out, in) = std::tuple(items_[i].effect, i, i);
      for (std::size_t j = 0; j < items_.size(); ++j) {
        const double gain = items_[i].effect - items_[j].effect;
        if (chosen_[j] || barred(j) || gain <= most || !met(wanted, j)) continue;
        std::tie(most, out, in) = std::tuple(gain, i, j);
      }
    }
    if (most == 0) return false;
    chosen_[out] = false;
    if (in != out) chosen_[in] = true;
    return true;
  }

  std::span<const BudgetItem> items_;
  std::vector<std::vector<double>> shares_;  // [limits][items]
  std::vector<bool> chosen_;
};

BudgetChoice choice_of(std::span<const BudgetItem> items, const ModelCost& full,
                       const std::vector<bool>& chosen) {
  BudgetChoice choice;
  choice.cost = full;
  for (std::size_t i = 0; i < items.size(); ++i) {
    (chosen[i] ? choice.quantized : choice.full_precision).push_back(items[i].path);
    if (!chosen[i]) continue;
    choice.effect += items[i].effect;
    choice.cost.bytes -= items[i].bytes_saved;
    choice.cost.ms -= items[i].ms_saved;
  }
  return choice;
}

std::string numbers_text(const BudgetChoice& choice) {
  return fmt::format("{} of {} layers quantized: {} bytes, {:.3f} ms for a second of audio",
                     choice.quantized.size(), choice.quantized.size() + choice.full_precision.size(),
                     choice.cost.bytes, choice.cost.ms);
}

BudgetChoice meet_costs(std::span<const BudgetItem> items, const ModelCost& full,
                                const Budget& budget) {
  Cover cover(items, full, budget);
  const bool met = cover.solve();
  BudgetChoice choice = choice_of(items, full, cover.chosen());
  if (!met) {
    choice.unmet = "can not be met; the least is " + numbers_text(choice) + " (allow more bytes or ms)";
    return choice;
  }
  choice.least_effect = cover.least_effect();
  return choice;
}

// The most layers, in the order of rising effect, that pass.
Result<BudgetChoice> meet_word_error(std::span<const BudgetItem> items, const ModelCost& full,
                                     const Evaluate& evaluate) {
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return items[i].effect; });
  std::optional<BudgetChoice> found;
  BudgetChoice fewest;  // that failed
  std::size_t passing = 0, failing = items.size() + 1;  // 0 layers are full precision
  for (std::size_t count = items.size(); failing > passing + 1; count = passing + (failing - passing) / 2) {
    std::vector<bool> chosen(items.size());
    for (const std::size_t i : std::span(order).first(count)) chosen[i] = true;
    BudgetChoice choice = choice_of(items, full, chosen);
    choice.gate = TRY(evaluate(choice.full_precision));
    if (choice.gate->passed) {
      passing = count;
      found = std::move(choice);
    } else {
      failing = count;
      fewest = std::move(choice);
    }
  }
  if (found) return std::move(*found);
  fewest.unmet = "can not be met: the gate does not pass even with one layer quantized, the one of least effect "
                 "(allow more word error)";
  return fewest;
}

}  // namespace

Result<Budget> parse_budget(std::string_view text) {
  Budget budget;
  while (true) {
    const std::string_view part = text.substr(0, text.find(','));
    const auto equals = part.find('=');
    const std::string key(part.substr(0, equals));
    if (equals == std::string_view::npos) {
      return refuse("'" + key + "' has no value", "such as wer=0.05,bytes=40M,ms=12.5");
    }
    const std::string value_text(part.substr(equals + 1));
    const auto value = parse_value(value_text, key == "bytes");
    const auto set = [&](auto& limit, double least) -> Status {
      if (limit) return refuse(key + " is there twice");
      if (!value || *value < least || *value > 1e15)
        return refuse("'" + value_text + "' is no limit of " + key);
      limit = static_cast<typename std::remove_reference_t<decltype(limit)>::value_type>(*value);
      return {};
    };
    if (key == "wer") {
      TRY(set(budget.wer, 0));
    } else if (key == "bytes") {
      TRY(set(budget.bytes, 1));
    } else if (key == "ms") {
      TRY(set(budget.ms, std::numeric_limits<double>::min()));
    } else {
      return refuse("'" + key + "' is none of wer, bytes, ms");
    }
    if (part.size() == text.size()) return budget;
    text.remove_prefix(part.size() + 1);
  }
}

Result<BudgetChoice> choose_layers(std::span<const BudgetItem> items, const ModelCost& full,
                                   const Budget& budget, const Evaluate& evaluate) {
  if (!budget.bytes && !budget.ms) return meet_word_error(items, full, evaluate);
  BudgetChoice choice = meet_costs(items, full, budget);
  if (!budget.wer || !choice.unmet.empty()) return choice;
  choice.gate = TRY(evaluate(choice.full_precision));
  if (choice.gate->passed) return choice;
  choice.unmet = fmt::format("can not be met: the gate does not pass with {}, which the limits of bytes and ms ask for "
                             "(allow more bytes, ms or word error)",
                             numbers_text(choice));
  return choice;
}

}  // namespace oasr::quantize
