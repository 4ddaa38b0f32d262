#include "layers/conv2d.h"

#include <gtest/gtest.h>

#include "layers/layer_list.h"
#include "quant/methods/testing.h"

namespace oasr::layers {
namespace {

using kernels::random_floats;

const kernels::ConvAxis kAxis{.taps = 3, .stride = 2};

Conv2dSpec spec_of(kernels::Activation activation = kernels::Activation::none) {
  return {.path = "convs.1", .vertical = kAxis, .horizontal = kAxis, .activation = activation};
}

quant::QuantizationSpec static_int8(bool smoothed) {
  quant::QuantizationSpec spec;
  spec.layers["convs.1"] = {.scheme = "int8_w8a8_static", .smoothed = smoothed};
  return spec;
}

ParameterSpec expected(const std::string& name, const Shape& shape, std::optional<StorageFormat> format = {}) {
  return {.name = name, .shape = shape, .stored = name, .format = format};
}

// A state dict in memory, and what a layer makes of it.
struct Stored {
  std::map<std::string, std::vector<std::byte>> memory;
  StateDict state;
  std::vector<ParameterSpec> specs;

  void add(const std::string& name, StorageFormat format, const Shape& shape, std::span<const std::byte> bytes) {
    auto& own = memory[name];
    own.assign(bytes.begin(), bytes.end());
    state.tensors[name] = {.format = format, .shape = shape, .bytes = own, .row_scale = {}};
    specs.push_back(expected(name, shape, format == StorageFormat::i8 ? std::optional(format) : std::nullopt));
  }
  Conv2d load(const Conv2dSpec& spec, const WeightOptions& options = {}) const {
    const Parameters parameters = Parameters::match(state, specs).value();
    return Conv2d::load(parameters, spec, options).value();
  }
};

struct Machine {
  ThreadPool pool{2};
  ExecContext context{.pool = &pool, .isa = detected_isa()};
};

std::vector<float> forward(const Conv2d& layer, ImageExtent in, const std::vector<float>& x) {
  Machine machine;
  layer.method().reserve(machine.context);
  const std::int64_t c_in = layer.method().shape().c_in, c_out = layer.method().shape().c_out;
  const std::int64_t rows = layer.outputs(in).pixels();
  std::vector<float> y(static_cast<std::size_t>(rows * c_out), 99.0f);
  layer.forward(machine.context, in, ConstMatrix{x.data(), in.pixels(), c_in, c_in}, Matrix{y.data(), rows, c_out, c_out});
  return y;
}

TEST(Conv2dLayer, ReadsChannelsBeforeTapsAndStepsByItsStride) {
  // Output 0 picks tap (1, 2) of channel 1, output 1 the sum of the centre's channels and its bias.
  std::vector<float> weight(2 * 2 * 9, 0.0f);
  weight[9 + 5] = 10;
  weight[18 + 4] = weight[27 + 4] = 1;
  const std::vector<float> bias = {0, -100};
  Stored stored;
  stored.add("convs.1.weight", StorageFormat::f32, {2, 2, 3, 3}, quant::bytes_of(weight));
  stored.add("convs.1.bias", StorageFormat::f32, {2}, quant::bytes_of(bias));
  const ImageExtent in{.batch = 1, .height = 5, .width = 5};
  std::vector<float> x(50);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const Conv2d layer = stored.load(spec_of());
  EXPECT_EQ(layer.outputs(in), (ImageExtent{.batch = 1, .height = 2, .width = 2}));
  // Pixel (y, x) has values 2 (5 y + x) and one more.
  EXPECT_EQ(forward(layer, in, x), (std::vector<float>{150, -75, 190, -67, 350, -35, 390, -27}));
  EXPECT_EQ(forward(stored.load(spec_of(kernels::Activation::relu)), in, x),
            (std::vector<float>{150, 0, 190, 0, 350, 0, 390, 0}));
}

TEST(Conv2dLayer, RefusesMatricesThatDoNotFit) {
  const auto weight = random_floats(8 * 9, 1);
  Stored stored;
  stored.add("convs.1.weight", StorageFormat::f32, {8, 1, 3, 3}, quant::bytes_of(weight));
  const Conv2d layer = stored.load(spec_of());
  Machine machine;
  std::vector<float> x(25), y(4 * 8);
  const ConstMatrix images{x.data(), 25, 1, 1};
  const ImageExtent in{.batch = 1, .height = 5, .width = 5};
  EXPECT_THROW(layer.forward(machine.context, in, images, Matrix{y.data(), 3, 8, 8}), InternalError);
  EXPECT_THROW(layer.forward(machine.context, {.batch = 1, .height = 5, .width = 4}, images, Matrix{y.data(), 2, 8, 8}),
               InternalError);
  layer.forward(machine.context, in, images, Matrix{y.data(), 4, 8, 8});
}

// What a layer writes is read back by another, in every storage.
TEST(Conv2dLayer, ComesBackFromItsStateWithTheSameBits) {
  const ImageExtent in{.batch = 2, .height = 7, .width = 9};
  const auto x = random_floats(in.pixels() * 16, 4), bias = random_floats(24, 5), weight = random_floats(24 * 16 * 9, 6);
  const quant::QuantizationSpec spec = static_int8(true);
  const WeightOptions int8{.quantization = &spec,
                           .stored_quantized = true,
                           .methods = {.scaled_mm = &kernels::scaled_mm_implementation(kernels::ScaledMMBackend::native)}};
  const quant::OwnedSlots slots = quant::made_slots(*spec.find("convs.1"), {24, 3, 3, 16}, 7);
  for (const auto dtype : {DType::f32, DType::f16, DType::bf16, DType::i8}) {
    Stored stored;
    WeightOptions options{.dtype = dtype};
    if (dtype == DType::i8) {
      options = int8;
      for (const auto& [suffix, tensor] : slots.slots) stored.add("convs.1." + suffix, tensor.format, tensor.shape, tensor.bytes);
    } else {
      stored.add("convs.1.weight", StorageFormat::f32, {24, 16, 3, 3}, quant::bytes_of(weight));
    }
    stored.add("convs.1.bias", StorageFormat::f32, {24}, quant::bytes_of(bias));
    Conv2d layer = stored.load(spec_of(), options);
    LayerList list;
    list.image_convolutions = {&layer};
    EXPECT_EQ(list.find_image_convolution("convs.1"), &layer);
    EXPECT_EQ(list.find_image_convolution("convs.0"), nullptr);
    EXPECT_GT(list.weight_bytes(Isa::scalar), 24 * 16 * 9);
    Stored again;
    for (const TensorSource& source : list.state()) again.add(source.name, source.format, source.shape, quant::written(source));
    if (dtype != DType::i8) options.dtype = std::nullopt;
    const Conv2d copy = again.load(spec_of(), options);
    EXPECT_EQ(copy.method().info(Isa::scalar).storage, layer.method().info(Isa::scalar).storage);
    EXPECT_EQ(forward(copy, in, x), forward(layer, in, x));
  }
}

TEST(Conv2dLayer, TellsTheObserverWhereAnInt8InputIsNotFinite) {
  struct Observer : RunObserver {
    void not_finite(std::string_view layer, std::int64_t row) override { seen = std::string(layer) + " " + std::to_string(row); }
    std::string seen;
  };
  const quant::QuantizationSpec spec = static_int8(false);
  const quant::OwnedSlots slots = quant::made_slots(*spec.find("convs.1"), {24, 3, 3, 16}, 7);
  Stored stored;
  for (const auto& [suffix, tensor] : slots.slots) stored.add("convs.1." + suffix, tensor.format, tensor.shape, tensor.bytes);
  const Conv2d layer = stored.load(
      spec_of(), {.quantization = &spec,
                  .stored_quantized = true,
                  .methods = {.scaled_mm = &kernels::scaled_mm_implementation(kernels::ScaledMMBackend::native)}});
  Machine machine;
  Observer observer;
  machine.context.observer = &observer;
  layer.method().reserve(machine.context);
  std::vector<float> x(25 * 16, 0.5f), y(4 * 24);
  x[(4 * 5 + 1) * 16 + 3] = std::nanf("");  // on the last line: seen by the first output of the second row
  layer.forward(machine.context, {.batch = 1, .height = 5, .width = 5}, ConstMatrix{x.data(), 25, 16, 16},
                Matrix{y.data(), 4, 24, 24});
  EXPECT_EQ(observer.seen, "convs.1 2");
}

}  // namespace
}  // namespace oasr::layers
