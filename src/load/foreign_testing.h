// 4-bit checkpoints of other toolkits, as those write them, of the small random Whisper.
#pragma once

#include <functional>

#include "checkpoint/foreign_w4.h"
#include "checkpoint/test_files.h"
#include "formats/testing.h"
#include "formats/w4_packed.h"
#include "load/testing.h"
#include "models/whisper/test_support.h"
#include "quant/methods/w4a8_linear.h"
#include "tensor/dtype.h"

namespace oasr::load {

namespace fs = std::filesystem;
using formats::ScaleOrder;
using formats::W4Form;
using formats::W4Weight;
using formats::ZeroDomain;

// Tensors that own their bytes.
struct ForeignFile {
  struct Tensor {
    StorageFormat format = StorageFormat::f32;
    std::vector<std::int64_t> shape;
    std::string bytes;
  };
  std::map<std::string, Tensor> tensors;

  template <class T>
  void add(const std::string& name, StorageFormat format, std::vector<std::int64_t> shape,
           const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    tensors[name] = {format, std::move(shape), {reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
  }

  void write_safetensors_file(const fs::path& path) const {
    std::vector<TensorSource> sources;
    for (const auto& [name, tensor] : tensors) {
      sources.push_back({.name = name,
                         .format = tensor.format,
                         .shape = *Shape::checked(tensor.shape),
                         .row = [&tensor](std::int64_t row, std::span<std::byte> out) {
                           std::memcpy(out.data(),
                                       tensor.bytes.data() + static_cast<std::size_t>(row) * out.size(),
                                       out.size());
                         }});
    }
    write_safetensors(path, sources).value();
  }

  // torch.save of a state dict.
  void write_torch_file(const fs::path& path) const {
    namespace pickle = oasr::testing::pickle;
    const std::map<StorageFormat, const char*> types = {
        {StorageFormat::f32, "FloatStorage"}, {StorageFormat::f16, "HalfStorage"},
        {StorageFormat::i8, "CharStorage"},   {StorageFormat::u8, "ByteStorage"},
        {StorageFormat::i32, "IntStorage"},   {StorageFormat::i64, "LongStorage"}};
    std::string items;
    std::vector<std::pair<std::string, std::string>> storages;
    for (const auto& [name, tensor] : tensors) {
      const std::string key = std::to_string(storages.size());
      std::int32_t elements = 1;
      std::string shape, stride;
      for (auto axis = tensor.shape.rbegin(); axis != tensor.shape.rend(); ++axis) {
        shape = pickle::integer(static_cast<std::int32_t>(*axis)) + shape;
        stride = pickle::integer(elements) + stride;
        elements *= static_cast<std::int32_t>(*axis);
      }
      items +=
          pickle::text(name) +
          pickle::call(pickle::global("torch._utils", "_rebuild_tensor_v2"),
                       pickle::storage(types.at(tensor.format), key, elements) + pickle::integer(0) +
                           pickle::tuple(shape) + pickle::tuple(stride) + "\x89" + pickle::ordered_dict(""));
      storages.emplace_back(key, tensor.bytes);
    }
    write_text_file(path, oasr::testing::torch_file(pickle::whole(pickle::ordered_dict(items)), storages))
        .value();
  }
};

inline std::vector<Half> halves(const std::vector<float>& values) {
  std::vector<Half> out;
  for (const float value : values) out.push_back(to_half(value));
  return out;
}

// The matrices of a model in 4 bits, by Hugging Face's names, and everything else at full precision.
struct ForeignModel {
  models::whisper::RandomCheckpoint random;
  std::map<std::string, W4Weight> weights;

  static models::whisper::Config config() {
    auto config = models::whisper::small_config();
    config.d_model = 128;
    config.encoder_ffn_dim = config.decoder_ffn_dim = 256;
    return config;
  }

  ForeignModel(W4Form form, ZeroDomain domain) : random(config()) {
    for (const auto& [name, tensor] : random.checkpoint.tensors.tensors) {
      if (name.find("proj.weight") == name.npos && name.find("fc") == name.npos) continue;
      if (!name.ends_with(".weight")) continue;
      const auto values = models::whisper::floats_of(tensor);
      const std::int64_t n = tensor.shape[0], k = tensor.shape[1];
      // As quantize() does; a zero that is a code is as good as one after the scale.
      const bool grouped = form == W4Form::per_group;
      auto weight = formats::encode(n, k, formats::rows_of(values, k),
                                    {.form = form, .domain = domain, .search = grouped})
                        .value();
      if (!grouped && domain == ZeroDomain::post_scaled) {
        weight.domain = domain;
        for (float& zero : weight.channel_zero) zero = to_float(to_half(zero));
      }
      weights[name.substr(0, name.rfind('.'))] = std::move(weight);
    }
  }

  ForeignFile full_precision() const {
    ForeignFile file;
    for (const auto& [name, tensor] : random.checkpoint.tensors.tensors) {
      if (name.ends_with(".weight") && weights.contains(name.substr(0, name.rfind('.')))) continue;
      file.add(name, tensor.format, {tensor.shape.extents().begin(), tensor.shape.extents().end()},
               std::vector<std::byte>(tensor.bytes.begin(), tensor.bytes.end()));
    }
    return file;
  }

  // config.json and the tokenizer.
  void write_documents(const fs::path& folder) const {
    models::whisper::write_hugging_face(random, folder);
    fs::remove(folder / "model.safetensors");
  }
  void add_to_config(const fs::path& folder, const char* quantization) const {
    Json config = parse_json(read_text_file(folder / "config.json").value(), "config").value();
    config["quantization_config"] = parse_json(quantization, "quantization").value();
    write_text_file(folder / "config.json", config.dump()).value();
  }
};

// Moves the scales of a row of groups, in QServe's order, to the other one.
inline std::vector<std::int8_t> in_pairs(const std::vector<std::int8_t>& quads, std::int64_t n) {
  std::vector<std::int8_t> pairs(quads.size());
  for (std::size_t i = 0; i < quads.size(); ++i) {
    const auto channel = static_cast<std::int64_t>(i) % n, row = static_cast<std::int64_t>(i) - channel;
    pairs[static_cast<std::size_t>(row + formats::scale_place(ScaleOrder::pairs, channel))] =
        quads[static_cast<std::size_t>(row + formats::scale_place(ScaleOrder::quads, channel))];
  }
  return pairs;
}

inline ForeignFile as_qserve(const ForeignModel& model, ScaleOrder order = ScaleOrder::quads) {
  ForeignFile file = model.full_precision();
  for (const auto& [path, weight] : model.weights) {
    formats::PackedW4 packed = formats::pack(weight).value();
    const std::int64_t n = packed.n, groups = packed.k / formats::kGroup;
    file.add(path + ".qweight", StorageFormat::i8, {n, packed.k / 2}, packed.qweight);
    file.add(path + ".s1_scales", StorageFormat::f16, {n}, packed.s1_scales);
    if (weight.form == W4Form::per_channel) {
      file.add(path + ".s1_szeros", StorageFormat::f16, {n}, packed.s1_szeros);
      continue;
    }
    for (auto* values : {&packed.s2_scales, &packed.s2_zeros}) {
      if (order == ScaleOrder::pairs) *values = in_pairs(*values, n);
    }
    file.add(path + ".s2_scales", StorageFormat::i8, {groups, n}, packed.s2_scales);
    file.add(path + ".s2_zeros", StorageFormat::i8, {groups, n}, packed.s2_zeros);
  }
  return file;
}

struct FakeQuantFiles {
  ForeignFile model, scales;
};
inline FakeQuantFiles as_fake_quant(const ForeignModel& source) {
  FakeQuantFiles files{.model = source.full_precision(), .scales = {}};
  for (const auto& [path, weight] : source.weights) {
    const std::int64_t n = weight.n, groups = weight.groups();
    const bool grouped = weight.form == W4Form::per_group, pre = weight.domain == ZeroDomain::pre_scaled;
    files.model.add(path + ".weight", StorageFormat::f16, {n, weight.k}, halves(formats::decoded(weight)));
    const std::string scale = path + ".weight.scale.";
    files.scales.add(scale + "0", StorageFormat::f16, {n, 1, 1, 1}, halves(weight.channel_scale));
    std::vector<float> zeros;
    for (std::size_t i = 0; i < weight.scaled_zero.size(); ++i) {
      const int zero = weight.scaled_zero[i];
      zeros.push_back(static_cast<float>(pre ? zero / weight.group_scale[i] : zero));
    }
    for (std::size_t i = 0; i < weight.channel_zero.size(); ++i) {
      zeros.push_back(pre ? weight.channel_zero[i] / weight.channel_scale[i] : weight.channel_zero[i]);
    }
    if (grouped) {
      files.scales.add(scale + "1", StorageFormat::f32, {n, 1, groups, 1},
                       std::vector<float>(weight.group_scale.begin(), weight.group_scale.end()));
    }
    files.scales.add(path + (pre ? ".weight.zero" : ".weight.scaled_zero"), StorageFormat::f32,
                     {n, 1, grouped ? groups : 1, 1}, zeros);
  }
  return files;
}

constexpr const char* kCompressedConfig =
    R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
  "quantization_status": "compressed", "ignore": ["proj_out"], "config_groups": {"group_0": {"targets": ["Linear"],
  "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": false,
  "dynamic": false, "actorder": null},
  "input_activations": {"num_bits": 8, "type": "int", "strategy": "token", "symmetric": true, "dynamic": true},
  "output_activations": null}}})";

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  CHECK(at != text.npos, "the text to replace");
  return text.replace(at, from.size(), to);
}

// int4 codes as eight in a word, along the last axis.
inline std::vector<std::int32_t> words_of(const std::vector<std::int8_t>& q, std::int64_t rows,
                                          std::int64_t columns) {
  const std::int64_t row_words = (columns + 7) / 8;
  std::vector<std::uint32_t> words(static_cast<std::size_t>(rows * row_words));
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    const std::int64_t row = i / columns, column = i % columns;
    words[static_cast<std::size_t>(row * row_words + column / 8)] |=
        static_cast<std::uint32_t>(q[static_cast<std::size_t>(i)] + 8) << 4 * (column % 8);
  }
  return {words.begin(), words.end()};
}

// Of weights with zeros before the scale: q = u - 8, zero = z - 8, scale = channel scale · group scale.
inline ForeignFile as_compressed(const ForeignModel& model, bool packed) {
  ForeignFile file = model.full_precision();
  for (const auto& [path, weight] : model.weights) {
    const bool grouped = weight.form == W4Form::per_group;
    const std::int64_t n = weight.n, k = weight.k, groups = grouped ? weight.groups() : 1;
    std::vector<std::int8_t> q, zeros(static_cast<std::size_t>(n * groups)), by_group(zeros.size());
    for (const std::uint8_t code : weight.codes) q.push_back(static_cast<std::int8_t>(code - 8));
    std::vector<float> scales;
    for (std::size_t i = 0; i < zeros.size(); ++i) {
      const auto channel = static_cast<std::int64_t>(i) / groups,
                 group = static_cast<std::int64_t>(i) % groups;
      const int scale = grouped ? weight.group_scale[i] : 1;
      const int zero = grouped ? weight.scaled_zero[i] / scale : formats::zero_code(weight, channel);
      scales.push_back(weight.channel_scale[static_cast<std::size_t>(channel)] * static_cast<float>(scale));
      zeros[i] = static_cast<std::int8_t>(zero - 8);
      by_group[static_cast<std::size_t>(group * n + channel)] = zeros[i];
    }
    file.add(path + ".weight_scale", StorageFormat::f32, {n, groups}, scales);
    if (!packed) {
      file.add(path + ".weight", StorageFormat::i8, {n, k}, q);
      file.add(path + ".weight_zero_point", StorageFormat::i8, {n, groups}, zeros);
      continue;
    }
    file.add(path + ".weight_packed", StorageFormat::i32, {n, k / 8}, words_of(q, n, k));
    file.add(path + ".weight_shape", StorageFormat::i64, {2}, std::vector<std::int64_t>{n, k});
    // Packed along N: word [n / 8, g].
    const auto by_rows = words_of(by_group, groups, n);
    std::vector<std::int32_t> words(by_rows.size());
    for (std::size_t i = 0; i < words.size(); ++i) {
      const auto row_words = static_cast<std::size_t>(n / 8), g = i / row_words, word = i % row_words;
      words[word * static_cast<std::size_t>(groups) + g] = by_rows[i];
    }
    file.add(path + ".weight_zero_point", StorageFormat::i32, {n / 8, groups}, words);
  }
  return file;
}

}  // namespace oasr::load
