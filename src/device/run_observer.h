// What may watch a run: told of numbers that are not finite and, when it asks, of every layer's time.
#pragma once

#include <cstdint>
#include <string_view>

namespace oasr {

// Called in the thread that runs the model.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // A layer met NaN or infinity in a row (the lowest one) of its input or output.
  virtual void not_finite(std::string_view layer, std::int64_t row) = 0;
  // Whether layer_time() is to be called.
  virtual bool wants_times() const { return false; }
  // One call of a layer: rows of its input, wall seconds.
  virtual void layer_time(std::string_view /*layer*/, std::int64_t /*rows*/, double /*seconds*/) {}
};

}  // namespace oasr
