// What may watch a run: told of numbers that are not finite and, when it asks, of every layer's time, input
// or output.
#pragma once

#include <cstdint>
#include <string_view>

#include "tensor/matrix.h"

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
  // Whether layer_input() is to be called.
  virtual bool wants_inputs() const { return false; }
  // The float32 rows that a layer with a matrix is about to multiply. Not called for int8 rows of a link.
  virtual void layer_input(std::string_view /*layer*/, ConstMatrix /*x*/) {}
  // Whether layer_output() is to be called.
  virtual bool wants_outputs() const { return false; }
  // The float32 rows that a layer with a matrix, or a norm, has written. Not called for int8 rows of a link.
  virtual void layer_output(std::string_view /*layer*/, ConstMatrix /*y*/) {}
  // Of the rows that each layer sees from now on, counted over its calls, the first `rows` come from audio
  // and the rest from padding. Negative: all come from audio, as at the beginning.
  virtual void audio_rows(std::int64_t /*rows*/) {}
};

// Hands everything on to another observer, if there is one.
class RelayObserver : public RunObserver {
 public:
  explicit RelayObserver(RunObserver* next) : next_(next) {}
  void not_finite(std::string_view layer, std::int64_t row) override {
    if (next_ != nullptr) next_->not_finite(layer, row);
  }
  bool wants_times() const override { return next_ != nullptr && next_->wants_times(); }
  void layer_time(std::string_view layer, std::int64_t rows, double seconds) override {
    next_->layer_time(layer, rows, seconds);
  }
  bool wants_inputs() const override { return next_ != nullptr && next_->wants_inputs(); }
  void layer_input(std::string_view layer, ConstMatrix x) override { next_->layer_input(layer, x); }
  bool wants_outputs() const override { return next_ != nullptr && next_->wants_outputs(); }
  void layer_output(std::string_view layer, ConstMatrix y) override { next_->layer_output(layer, y); }
  void audio_rows(std::int64_t rows) override {
    if (next_ != nullptr) next_->audio_rows(rows);
  }

 private:
  RunObserver* next_;
};

}  // namespace oasr
