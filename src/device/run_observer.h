// What may watch a run: told of numbers that are not finite and, when it asks, of every layer's time, input
// or output.
#pragma once

#include <cstdint>
#include <string_view>

#include "tensor/matrix.h"

namespace oasr {

// What a call of a layer had to do. Of a layer with a matrix its report says it.
struct LayerWork {
  double operations = 0;                  // a multiply-add is two
  double bytes = 0;                       // read and written, at least
  std::string_view operands = "float32";  // of the operations; a text that stays
};

// One call of a layer.
struct LayerCall {
  std::int64_t rows = 0;     // of its input
  double seconds = 0;        // wall; on a GPU, of the GPU: from the kernel before it to its last one
  std::int64_t kernels = 0;  // on a GPU
  LayerWork work;
};

// Called in the thread that runs the model.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // A layer met NaN or infinity in a row (the lowest one) of its input or output.
  virtual void not_finite(std::string_view layer, std::int64_t row) = 0;
  // Whether layer_time() is to be called.
  virtual bool wants_times() const { return false; }
  virtual void layer_time(std::string_view /*layer*/, const LayerCall& /*call*/) {}
  // Of a GPU, while times are wanted: kernels that started together, those between the layers included.
  virtual void section_time(double /*seconds*/, std::int64_t /*kernels*/) {}
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
  void layer_time(std::string_view layer, const LayerCall& call) override {
    if (next_ != nullptr) next_->layer_time(layer, call);
  }
  void section_time(double seconds, std::int64_t kernels) override {
    if (next_ != nullptr) next_->section_time(seconds, kernels);
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
