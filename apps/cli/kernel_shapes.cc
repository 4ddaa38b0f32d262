#include "cli/kernel_shapes.h"

#include <fmt/format.h>

namespace oasr::cli {
namespace {

constexpr std::size_t kMostDigits = 9;

class Shapes {
 public:
  explicit Shapes(std::string_view text) : text_(text) {}

  Result<std::vector<KernelShape>> all() {
    std::vector<KernelShape> shapes;
    do {
      auto next = shape();
      if (!next) return unexpected(next.error());
      shapes.push_back(*next);
    } while (take(','));
    if (at_ < text_.size()) return wrong("a comma or the end");
    return shapes;
  }

 private:
  Result<KernelShape> shape() {
    std::vector<std::int64_t> extents;
    do {
      auto next = extent();
      if (!next) return unexpected(next.error());
      extents.push_back(*next);
    } while (extents.size() < 3 && take('x'));
    if (extents.size() == 1) return wrong("an x and the next extent");
    if (extents.size() == 2) return KernelShape{.m = extents[0], .n = 0, .k = extents[1]};
    return KernelShape{.m = extents[0], .n = extents[1], .k = extents[2]};
  }

  Result<std::int64_t> extent() {
    const std::size_t first = at_;
    std::int64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      if (at_ - first == kMostDigits) return wrong(fmt::format("no more than {} digits", kMostDigits));
      value = 10 * value + (text_[at_++] - '0');
    }
    if (at_ == first) return wrong("a digit");
    if (value == 0) {
      at_ = first;
      return wrong("an extent of at least 1");
    }
    return value;
  }

  bool take(char wanted) {
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  Unexpected wrong(const std::string& wanted) const {
    const std::string found = at_ < text_.size() ? fmt::format("'{}'", text_[at_]) : "the end";
    return unexpected(ErrorCode::invalid_argument,
                      fmt::format("{} at position {} of '{}', where {} was expected", found, at_ + 1, text_, wanted),
                      "--shapes", "write MxNxK, or MxK for rows, with commas between, as in 1500x2048x512,64x4096x4096");
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<std::vector<KernelShape>> parse_kernel_shapes(std::string_view text) { return Shapes(text).all(); }

}  // namespace oasr::cli
