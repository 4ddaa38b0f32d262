// Every method of the table: what it stores, what it refuses, and which bits it computes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "quant/methods/testing.h"

namespace oasr::quant {
namespace {

using kernels::first_difference;
using kernels::random_floats;

constexpr std::int64_t kN = 32, kK = 384;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::string name_of(const QuantizedLayer& layer) {
  std::string name = layer.scheme + (layer.smoothed ? ", smoothed" : "");
  if (layer.zero_domain) name += fmt::format(", {}", enum_name(formats::zero_domain_names(), *layer.zero_domain));
  return name;
}

MethodOptions on(kernels::ScaledMMBackend backend) {
  return {.scaled_mm = &kernels::scaled_mm_implementation(backend)};
}
const MethodOptions kNative = on(kernels::ScaledMMBackend::native);

Result<LinearMethodPtr> try_make(const QuantizedLayer& layer, const OwnedSlots& made,
                                 const MethodOptions& options = kNative) {
  return quant_method(layer.scheme)
      .from_slots(layer, made.slots, random_floats(kN, 5), kernels::Activation::gelu, options);
}

LinearMethodPtr make(const QuantizedLayer& layer, const OwnedSlots& made,
                     const MethodOptions& options = kNative) {
  return std::move(try_make(layer, made, options).value());
}

// The tensors of a state by suffix, without the bias.
OwnedSlots stored(std::vector<TensorSource> state) {
  OwnedSlots slots;
  for (const TensorSource& source : state) {
    const std::string suffix = source.name.substr(source.name.rfind('.') + 1);
    if (suffix != "bias") slots.add(suffix, source.format, source.shape, written(source));
  }
  return slots;
}

struct Machine {
  explicit Machine(int threads = 2, Isa isa = detected_isa())
      : pool(threads), context{.pool = &pool, .isa = isa} {}
  ThreadPool pool;
  ExecContext context;
};

struct Forward {
  std::vector<float> y;
  std::int64_t bad_row = -1;
};

// residual: [M, N], or empty.
Forward forward(const LinearMethod& method, const std::vector<float>& x,
                const std::vector<float>& residual = {}, int threads = 2, Isa isa = detected_isa()) {
  Machine machine(threads, isa);
  method.reserve(machine.context);
  const std::int64_t k = method.in_features(), n = method.out_features();
  const std::int64_t m = static_cast<std::int64_t>(x.size()) / k;
  Forward out{std::vector<float>(static_cast<std::size_t>(m * n), 99.0f)};
  const ConstMatrix add = residual.empty() ? ConstMatrix{} : ConstMatrix{residual.data(), m, n, n};
  const auto found =
      method.forward(machine.context, ConstMatrix{x.data(), m, k, k}, add, Matrix{out.y.data(), m, n, n});
  out.bad_row = found.row;
  return out;
}

// The int8 weight that codes and scales stand for.
kernels::PackedInt8Weight int8_weight(const QuantizedLayer& layer, const OwnedSlots& made) {
  std::vector<std::int8_t> weight(static_cast<std::size_t>(kN * kK));
  const auto form = w4_form(layer.scheme);
  if (!form) {
    std::memcpy(weight.data(), made.slots.at("weight").bytes.data(), weight.size());
    return kernels::PackedInt8Weight::pack(kN, kK, weight, floats_in(made.slots.at("weight_scale")));
  }
  const formats::W4Weight w4 = read_w4(*form, *layer.zero_domain, made.slots).value();
  for (std::int64_t n = 0; n < kN; ++n) {
    formats::decode_row(w4, n, std::span(weight).subspan(static_cast<std::size_t>(n * kK), kK));
  }
  return kernels::PackedInt8Weight::pack(kN, kK, weight, floats_in(made.slots.at("s1_scales")));
}

bool has_float_zeros(const QuantizedLayer& layer) {
  return w4_form(layer.scheme) == formats::W4Form::per_channel &&
         layer.zero_domain == formats::ZeroDomain::post_scaled;
}

// Float zeros stand for no int8 weight: kernels/scaled_mm_int4/op.h defines what they do.
kernels::PackedInt4Weight float_zero_weight(const OwnedSlots& made) {
  const auto w4 =
      read_w4(formats::W4Form::per_channel, formats::ZeroDomain::post_scaled, made.slots).value();
  return kernels::PackedInt4Weight::pack_channels(kN, kK, w4.codes, w4.channel_scale, {}, w4.channel_zero);
}

// The definition: the rows of x quantized by kernels/quantize/reference.cc, then multiplied by
// kernels/scaled_mm/reference.cc.
std::vector<float> composed(const QuantizedLayer& layer, const OwnedSlots& made, const std::vector<float>& x,
                            const std::vector<float>& residual) {
  const std::int64_t m = static_cast<std::int64_t>(x.size()) / kK;
  const auto smooth =
      made.slots.contains("smooth_inv") ? floats_in(made.slots.at("smooth_inv")) : std::vector<float>();
  std::vector<std::int8_t> q(x.size());
  std::vector<float> scale(static_cast<std::size_t>(m));
  kernels::ActivationScale a_scale = kernels::ActivationScale::per_token(scale.data());
  if (made.slots.contains("input_scale")) {
    scale = floats_in(made.slots.at("input_scale"));
    a_scale = kernels::ActivationScale::per_tensor(scale.data());
    const auto multiplier = kernels::static_multiplier(smooth, scale[0], kK);
    EXPECT_FALSE(kernels::quantize_static_reference({.x = x.data(),
                                                     .ldx = kK,
                                                     .m = m,
                                                     .k = kK,
                                                     .multiplier = multiplier.data(),
                                                     .q = q.data(),
                                                     .ldq = kK}));
  } else {
    EXPECT_FALSE(kernels::quantize_per_token_reference(
        {.x = x.data(), .ldx = kK, .m = m, .k = kK, .smooth_inv = smooth.empty() ? nullptr : smooth.data(),
         .q = q.data(), .ldq = kK, .scale = scale.data()}));
  }
  const auto bias = random_floats(kN, 5);
  std::vector<float> y(static_cast<std::size_t>(m * kN));
  const auto multiply = [&]<class Weight>(const Weight& weight) {
    kernels::scaled_mm_reference(
        kernels::ScaledMMArgsOf<Weight>{.a = q.data(), .lda = kK, .a_scale = a_scale, .m = m, .weight = &weight,
                                        .bias = bias.data(), .activation = kernels::Activation::gelu},
        {.residual = residual.empty() ? nullptr : residual.data(), .ldr = kN, .y = y.data(), .ldy = kN});
  };
  if (has_float_zeros(layer)) {
    multiply(float_zero_weight(made));
  } else {
    multiply(int8_weight(layer, made));
  }
  return y;
}

TEST(QuantMethods, AreOneForEveryServedScheme) {
  for (const QuantScheme& scheme : quant_schemes()) {
    if (!find_scheme(scheme.name)) continue;
    EXPECT_EQ(quant_method(scheme.name).scheme, scheme.name);
  }
}

TEST(QuantMethods, SayWhichSlotHasAScaleAChannel) {
  for (const QuantMethod& method : quant_methods()) {
    const auto slot = std::ranges::find(method.slots, method.channel_scale, &StorageSlot::suffix);
    ASSERT_NE(slot, method.slots.end()) << method.scheme;
    EXPECT_EQ(slot->extent, StorageSlot::Extent::rows) << method.scheme;
  }
}

TEST(QuantMethods, StateIsTheStorageTableAndTheBytesThatWereRead) {
  for (const QuantizedLayer& layer : every_storage()) {
    SCOPED_TRACE(name_of(layer));
    const OwnedSlots made = made_slots(layer, {kN, kK}, 1);
    const LinearMethodPtr method = make(layer, made);
    const auto slots = storage_slots(layer);
    const auto state = method->state("a.b");
    ASSERT_EQ(state.size(), slots.size() + 1);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      EXPECT_EQ(state[i].name, "a.b." + std::string(slots[i].suffix));
      EXPECT_EQ(state[i].format, slots[i].format);
      EXPECT_EQ(state[i].shape, slot_shape(slots[i], {kN, kK}, kK));
      EXPECT_EQ(written(state[i]), made.memory.at(std::string(slots[i].suffix))) << state[i].name;
    }
    EXPECT_EQ(state.back().name, "a.b.bias");
    EXPECT_EQ(method->info(detected_isa()).scheme, layer.scheme);
    EXPECT_EQ(method->in_features(), kK);
    EXPECT_EQ(method->out_features(), kN);
  }
}

TEST(QuantMethods, ConvolutionsStoreTapsBeforeChannels) {
  for (const QuantizedLayer& layer : every_storage()) {
    const QuantMethod& row = quant_method(layer.scheme);
    if (row.conv1d_from_slots == nullptr) continue;
    SCOPED_TRACE(name_of(layer));
    const Shape weight = {kN, 3, 16};
    const OwnedSlots made = made_slots(layer, weight, 2);
    const auto method = row.conv1d_from_slots(
        made.slots, {.c_out = kN, .c_in = 16, .stride = 2, .bias = random_floats(kN, 3)}, kNative).value();
    const auto state = method->state("conv");
    const auto slots = storage_slots(layer);
    ASSERT_EQ(state.size(), slots.size() + 1);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      EXPECT_EQ(state[i].name, "conv." + std::string(slots[i].suffix));
      EXPECT_EQ(state[i].shape, slot_shape(slots[i], weight, weight[weight.rank() - 1]));
      EXPECT_EQ(written(state[i]), made.memory.at(std::string(slots[i].suffix))) << state[i].name;
    }
  }
}

TEST(QuantMethods, ImageConvolutionsStoreTapsBeforeChannels) {
  for (const QuantizedLayer& layer : every_storage()) {
    const QuantMethod& row = quant_method(layer.scheme);
    if (row.conv2d_from_slots == nullptr) continue;
    SCOPED_TRACE(name_of(layer));
    const Shape weight = {kN, 5, 3, 16};
    const OwnedSlots made = made_slots(layer, weight, 2);
    const Conv2dShape shape{.c_out = kN, .c_in = 16, .vertical = {.taps = 5}, .horizontal = {.taps = 3}};
    const auto method = row.conv2d_from_slots(made.slots, shape, random_floats(kN, 3), kNative).value();
    const auto state = method->state("conv");
    const auto slots = storage_slots(layer);
    ASSERT_EQ(state.size(), slots.size() + 1);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      EXPECT_EQ(state[i].name, "conv." + std::string(slots[i].suffix));
      EXPECT_EQ(state[i].format, slots[i].format);
      EXPECT_EQ(state[i].shape, slot_shape(slots[i], weight, weight[weight.rank() - 1]));
      EXPECT_EQ(written(state[i]), made.memory.at(std::string(slots[i].suffix))) << state[i].name;
    }
    EXPECT_EQ(state.back().name, "conv.bias");
    EXPECT_EQ(method->info(detected_isa()).scheme, layer.scheme);
    EXPECT_EQ(method->info(detected_isa()).taps, 15);
  }
}

TEST(QuantMethods, OfFloatsComeBackFromTheirStateWithTheSameBits) {
  const auto weight = random_floats(kN * kK, 1), x = random_floats(7 * kK, 2);
  for (const QuantMethod& method : quant_methods()) {
    if (method.from_floats == nullptr) continue;
    SCOPED_TRACE(method.scheme);
    const LinearSource source{.n = kN, .k = kK,
                              .rows = [&](std::int64_t row, std::span<float> out) {
                                std::copy_n(weight.begin() + row * kK, kK, out.begin());
                              },
                              .bias = random_floats(kN, 5),
                              .activation = kernels::Activation::gelu};
    const LinearMethodPtr made = std::move(method.from_floats(source, kNative).value());
    const OwnedSlots state = stored(made->state("a"));
    const LinearMethodPtr again = make(quantized_layer(method.scheme), state);
    EXPECT_EQ(forward(*made, x).y, forward(*again, x).y);
    const auto quantized =
        method.quantize({.shape = {kN, kK}, .rows = source.rows}, {}, {.isa = detected_isa()}).value();
    for (const auto& [suffix, bytes] : state.memory) EXPECT_EQ(quantized.tensors.at(suffix).bytes, bytes) << suffix;
  }
}

TEST(QuantMethods, RefuseAScaleThatIsNone) {
  for (const QuantizedLayer& layer : every_storage()) {
    for (const StorageSlot& slot : storage_slots(layer)) {
      if (slot.format != StorageFormat::f32) continue;
      const std::string suffix(slot.suffix);
      const bool may_be_zero = suffix == "weight_scale";  // of a channel of zeros
      for (const float bad : {kNan, kInfinity, -kInfinity, -0.5f, 0.0f}) {
        SCOPED_TRACE(name_of(layer) + ", " + suffix + " " + std::to_string(bad));
        OwnedSlots made = made_slots(layer, {kN, kK}, 3);
        made.set(suffix, slot.extent == StorageSlot::Extent::one ? 0 : 11, bad);
        const auto method = try_make(layer, made);
        ASSERT_EQ(method.has_value(), may_be_zero && bad == 0);
        if (method) continue;
        EXPECT_EQ(method.error().code, ErrorCode::bad_checkpoint);
        EXPECT_NE(method.error().what.find(suffix), std::string::npos) << method.error().message();
      }
    }
  }
}

TEST(QuantMethods, TakeEveryInt8CodeOfAForeignCheckpoint) {
  for (const QuantizedLayer& layer : every_storage()) {
    if (w4_form(layer.scheme)) continue;
    OwnedSlots made = made_slots(layer, {kN, kK}, 4);
    std::ranges::fill(made.memory.at("weight"), std::byte{0x80});  // -128
    const auto x = random_floats(7 * kK, 6);
    EXPECT_EQ(forward(*make(layer, made), x).y, composed(layer, made, x, {})) << name_of(layer);
  }
}

// Dynamic, smoothed, static, both, 4-bit; every lane that runs here and the reference backend.
TEST(QuantMethods, AreTheCompositionOfTheReferencesBitForBit) {
  for (const QuantizedLayer& layer : every_storage()) {
    const OwnedSlots made = made_slots(layer, {kN, kK}, 7);
    const LinearMethodPtr native = make(layer, made);
    const LinearMethodPtr reference = make(layer, made, on(kernels::ScaledMMBackend::reference));
    EXPECT_TRUE(reference->info(Isa::scalar).reference);
    EXPECT_FALSE(native->info(Isa::scalar).reference);
    for (const std::int64_t m : {1, 7, 64}) {
      const auto x = random_floats(m * kK, static_cast<unsigned>(m)), residual = random_floats(m * kN, 9);
      for (const bool with_residual : {false, true}) {
        const auto add = with_residual ? residual : std::vector<float>();
        const auto expected = composed(layer, made, x, add);
        SCOPED_TRACE(name_of(layer) + ", M " + std::to_string(m));
        EXPECT_EQ(first_difference(forward(*reference, x, add).y, expected), -1);
        for (const auto& [isa, name] : isa_names()) {
          if (!isa_supported(isa)) continue;
          for (const int threads : {1, 3}) {
            const Forward result = forward(*native, x, add, threads, isa);
            EXPECT_EQ(first_difference(result.y, expected), -1) << name << ", threads " << threads;
            EXPECT_EQ(result.bad_row, -1);
          }
        }
      }
    }
  }
}

TEST(QuantMethods, WriteAConsumersInputAsTheConsumerWould) {
  const std::int64_t m = 7;
  const auto x = random_floats(m * kK, 1);
  const QuantizedLayer consuming{.scheme = "int8_w8a8_static", .smoothed = true};
  const OwnedSlots next = made_slots(consuming, {kN, kN}, 8);
  const LinearMethodPtr consumer = make(consuming, next);
  for (const QuantizedLayer& layer : every_storage()) {
    for (const auto backend : {kernels::ScaledMMBackend::native, kernels::ScaledMMBackend::reference}) {
      SCOPED_TRACE(name_of(layer));
      const OwnedSlots made = made_slots(layer, {kN, kK}, 7);
      const LinearMethodPtr producer = make(layer, made, on(backend));
      ASSERT_TRUE(producer->emits_int8());
      Machine machine;
      producer->reserve(machine.context);
      consumer->reserve(machine.context);
      std::vector<float> between(static_cast<std::size_t>(m * kN)), y(between.size());
      Activation hidden = Matrix{between.data(), m, kN, kN};
      EXPECT_FALSE(producer->forward_into(machine.context, ConstMatrix{x.data(), m, kK, kK},
                                          *consumer->static_input(), hidden));
      EXPECT_TRUE(ActivationAccess::is_static(hidden));
      EXPECT_FALSE(consumer->forward(machine.context, hidden, {}, Matrix{y.data(), m, kN, kN}));
      EXPECT_EQ(first_difference(y, forward(*consumer, forward(*producer, x).y).y), -1);
    }
  }
}

TEST(QuantMethods, ComputeARowWithoutItsNeighbours) {
  const auto x = random_floats(64 * kK, 3), residual = random_floats(64 * kN, 4);
  for (const QuantizedLayer& layer : every_storage()) {
    const LinearMethodPtr method = make(layer, made_slots(layer, {kN, kK}, 7));
    const auto together = forward(*method, x, residual).y;
    for (std::int64_t row = 0; row < 64; ++row) {
      const auto alone = forward(*method, {x.begin() + row * kK, x.begin() + (row + 1) * kK},
                                 {residual.begin() + row * kN, residual.begin() + (row + 1) * kN}).y;
      ASSERT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + row * kN))
          << name_of(layer) << " " << row;
    }
  }
}

TEST(QuantMethods, ReportTheLowestRowThatIsNotFiniteAndSpareTheOthers) {
  for (const QuantizedLayer& layer : every_storage()) {
    const OwnedSlots made = made_slots(layer, {kN, kK}, 7);
    for (const auto backend : {kernels::ScaledMMBackend::native, kernels::ScaledMMBackend::reference}) {
      SCOPED_TRACE(name_of(layer));
      const LinearMethodPtr method = make(layer, made, on(backend));
      auto x = random_floats(9 * kK, 3);
      const auto clean = forward(*method, x).y;
      x[5 * kK + 7] = kNan;
      x[7 * kK] = kInfinity;
      const Forward result = forward(*method, x);
      EXPECT_EQ(result.bad_row, 5);
      const bool dynamic = method->static_input() == nullptr;
      for (std::int64_t row = 0; row < 9; ++row) {
        const auto begin = static_cast<std::size_t>(row * kN);
        const auto y = std::span(result.y).subspan(begin, kN);
        if (row != 5 && row != 7) {
          EXPECT_TRUE(std::ranges::equal(y, std::span(clean).subspan(begin, kN))) << row;
        } else if (dynamic) {  // what follows from the row is NaN; static rows are only reported
          EXPECT_TRUE(std::ranges::all_of(y, [](float v) { return std::isnan(v); })) << row;
        }
      }
    }
  }
}

// The rows of a product over receptive fields: taps t - 1, t, t + 1 of zero-padded rows, by hand.
TEST(Int8Conv1d, IsTheProductOverReceptiveFieldsBitForBit) {
  constexpr std::int64_t kFrames = 10, kChannels = kK / 3, kFields = 3 * kChannels;
  static_assert(kFields == kK, "composed() has this K");
  const auto x = random_floats(kFrames * kChannels, 1);
  for (const bool smoothed : {false, true}) {
    const QuantizedLayer layer{.scheme = "int8_w8a8_static", .smoothed = smoothed};
    OwnedSlots made = made_slots(layer, {kN, 3, kChannels}, 2);
    OwnedSlots product;  // the same numbers as a product's
    for (const auto& [suffix, tensor] : made.slots) {
      std::vector<std::byte> bytes(tensor.bytes.begin(), tensor.bytes.end());
      if (suffix == "smooth_inv") bytes.insert(bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
      if (suffix == "smooth_inv") bytes.insert(bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
      const Shape shape = suffix == "weight"       ? Shape{kN, kK}
                          : suffix == "smooth_inv" ? Shape{kK}
                                                   : tensor.shape;
      product.add(suffix, tensor.format, shape, bytes);
    }
    for (const std::int64_t stride : {1, 2}) {
      const std::int64_t outputs = kFrames / stride;
      std::vector<float> fields(static_cast<std::size_t>(outputs * kK));
      for (std::int64_t t = 0; t < outputs; ++t) {
        for (std::int64_t tap = 0; tap < 3; ++tap) {
          const std::int64_t frame = t * stride + tap - 1;
          if (frame < 0 || frame >= kFrames) continue;
          std::copy_n(x.begin() + frame * kChannels, kChannels, fields.begin() + t * kK + tap * kChannels);
        }
      }
      const auto residual = random_floats(outputs * kN, 3);
      const auto expected = composed(layer, product, fields, residual);
      const auto method = quant_method(layer.scheme).conv1d_from_slots(
          made.slots,
          {.c_out = kN, .c_in = kChannels, .stride = stride, .bias = random_floats(kN, 5),
           .activation = kernels::Activation::gelu},
          kNative).value();
      for (const auto& [isa, name] : isa_names()) {
        if (!isa_supported(isa)) continue;
        Machine machine(3, isa);
        method->reserve(machine.context);
        std::vector<float> padded(static_cast<std::size_t>((kFrames + 2) * kChannels),
                                  kNan);  // rubbish at the ends
        std::ranges::copy(x, padded.begin() + kChannels);
        std::vector<float> y(expected.size());
        EXPECT_FALSE(method->forward(
            machine.context, Matrix{padded.data(), kFrames + 2, kChannels, kChannels},
            ConstMatrix{residual.data(), outputs, kN, kN}, Matrix{y.data(), outputs, kN, kN}));
        EXPECT_EQ(first_difference(y, expected), -1) << name << ", stride " << stride;
      }
    }
  }
}

// The product over receptive fields, by hand: images of zero-padded pixels, kernel 1x3 with stride 1x2.
TEST(Int8Conv2d, IsTheProductOverReceptiveFieldsBitForBit) {
  constexpr std::int64_t kChannels = kK / 3, kOutputs = 2 * 5 * 4;
  const ImageExtent in{.batch = 2, .height = 5, .width = 7};
  const auto x = random_floats(in.pixels() * kChannels, 1);
  for (const bool smoothed : {false, true}) {
    const QuantizedLayer layer{.scheme = "int8_w8a8_static", .smoothed = smoothed};
    OwnedSlots made = made_slots(layer, {kN, 1, 3, kChannels}, 2);
    OwnedSlots product;  // the same numbers as a product's
    for (const auto& [suffix, tensor] : made.slots) {
      std::vector<std::byte> bytes(tensor.bytes.begin(), tensor.bytes.end());
      if (suffix == "smooth_inv") bytes.insert(bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
      if (suffix == "smooth_inv") bytes.insert(bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
      const Shape shape = suffix == "weight"       ? Shape{kN, kK}
                          : suffix == "smooth_inv" ? Shape{kK}
                                                   : tensor.shape;
      product.add(suffix, tensor.format, shape, bytes);
    }
    std::vector<float> fields(static_cast<std::size_t>(kOutputs * kK));
    for (std::int64_t row = 0; row < kOutputs; ++row) {
      for (std::int64_t tap = 0; tap < 3; ++tap) {
        const std::int64_t column = row % 4 * 2 + tap - 1;
        if (column < 0 || column >= in.width) continue;
        std::copy_n(x.begin() + (row / 4 * in.width + column) * kChannels, kChannels,
                    fields.begin() + row * kK + tap * kChannels);
      }
    }
    const auto expected = composed(layer, product, fields, {});
    const Conv2dShape shape{.c_out = kN, .c_in = kChannels, .vertical = {},
                            .horizontal = {.taps = 3, .stride = 2, .before = 1, .after = 1},
                            .activation = kernels::Activation::gelu};
    EXPECT_EQ(shape.outputs(in), (ImageExtent{.batch = 2, .height = 5, .width = 4}));
    for (const auto backend : {kernels::ScaledMMBackend::native, kernels::ScaledMMBackend::reference}) {
      const auto method = quant_method(layer.scheme)
                              .conv2d_from_slots(made.slots, shape, random_floats(kN, 5), on(backend)).value();
      EXPECT_EQ(method->info(Isa::scalar).reference, backend == kernels::ScaledMMBackend::reference);
      for (const auto& [isa, name] : isa_names()) {
        if (!isa_supported(isa)) continue;
        Machine machine(3, isa);
        method->reserve(machine.context);
        std::vector<float> y(expected.size());
        EXPECT_FALSE(method->forward(machine.context, in, ConstMatrix{x.data(), in.pixels(), kChannels, kChannels},
                                     Matrix{y.data(), kOutputs, kN, kN}));
        EXPECT_EQ(first_difference(y, expected), -1) << name;
      }
    }
  }
}

}  // namespace
}  // namespace oasr::quant
