// For tests of native checkpoints: contents of both versions, and a folder to write them to and to damage.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <map>
#include <string>

#include "base/fs.h"
#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/containers.h"
#include "checkpoint/native.h"

namespace oasr {

// A tensor of the bytes seed, seed + step, … with a step of its own, so that none is part of
// another.
inline TensorSource tensor(std::string name, StorageFormat format, Shape shape, int seed) {
  return {std::move(name), format, shape, [seed](std::int64_t row, std::span<std::byte> out) {
            for (std::size_t i = 0; i < out.size(); ++i) {
              const auto at =
                  static_cast<int>(row) * static_cast<int>(out.size()) + static_cast<int>(i);
              out[i] = static_cast<std::byte>(seed + (2 * seed + 1) * at);
            }
          }};
}

// The checked-in sample of each format version: tests/data/native/v1 and v2.
inline NativeContent sample(int version) {
  NativeContent content;
  content.architecture = "whisper";
  content.tensors = {tensor("decoder.embed_tokens.weight", StorageFormat::f32, {3, 2}, 1),
                     tensor("encoder.conv1.bias", StorageFormat::f16, {5}, 2),
                     tensor("encoder.conv1.weight", StorageFormat::bf16, {2, 3, 1}, 4)};
  if (version == 1) {
    content.source_container = "huggingface";
    content.documents = {{"config.json", "{\"model_type\": \"whisper\",\n \"scale\": 1e-05}\n"},
                         {"generation_config.json", "{}"}};
    content.tokenizer = {.kind = "vocab_merges",
                         .vocab_json = R"({"a":0,"b":1,"ab":2})",
                         .merges_txt = "#version: 0.2\na b\n",
                         .added_tokens_json = R"({"<|x|>":3})",
                         .origin = "vocab.json + merges.txt"};
    return content;
  }
  content.source_container = "ggml";
  content.source_facts = {{"ftype", "q5_0"}};
  content.documents = {{"dims", R"({"n_mels":80})"}};
  content.notes = {"weights were stored as q5_0"};
  content.tokenizer = {.kind = "ranks",
                       .tokens = {"a", " b\\", "\n", "\xC3\xA4", std::string("\0\xFF", 2), ""},
                       .pattern = R"(\s+)",
                       .origin = "the vocabulary inside the ggml file"};
  content.quantization = R"({"schemes":["int8_w8a8"],"layers":{"encoder.fc1":{"smoothed":true}}})";
  content.tensors.push_back(tensor("encoder.fc1.weight", StorageFormat::i8, {2, 16}, 7));
  content.tensors.push_back(tensor("encoder.fc1.weight_scale", StorageFormat::f32, {2}, 9));
  content.tensors.push_back(tensor("encoder.fc1.input_scale", StorageFormat::f32, {}, 11));
  return content;
}

inline std::string bytes_of(const TensorSource& source) {
  std::string text(*storage_bytes(source.format, source.shape), '\0');
  const auto bytes = std::as_writable_bytes(std::span(text));
  const auto rows = source.shape.rank() < 2 ? 1 : source.shape[0];
  const auto size = bytes.size() / static_cast<std::size_t>(rows);
  for (std::int64_t row = 0; row < rows; ++row) {
    source.row(row, bytes.subspan(static_cast<std::size_t>(row) * size, size));
  }
  return text;
}

inline void expect_same(const TokenizerSource& a, const TokenizerSource& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.tokenizer_json, b.tokenizer_json);
  EXPECT_EQ(a.vocab_json, b.vocab_json);
  EXPECT_EQ(a.merges_txt, b.merges_txt);
  EXPECT_EQ(a.added_tokens_json, b.added_tokens_json);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.pattern, b.pattern);
  EXPECT_EQ(a.origin, b.origin);
}

inline void expect_same(const Checkpoint& checkpoint, const NativeContent& content) {
  EXPECT_EQ(checkpoint.container, "native");
  EXPECT_EQ(checkpoint.architecture, content.architecture);
  EXPECT_EQ(checkpoint.source_container, content.source_container);
  EXPECT_EQ(checkpoint.origin(), content.source_container);
  EXPECT_EQ(checkpoint.source_facts, content.source_facts);
  EXPECT_EQ(checkpoint.notes, content.notes);
  auto documents = content.documents;
  if (content.quantization) {
    documents["quantization"] = Json::parse(*content.quantization).dump();
  }
  EXPECT_EQ(checkpoint.documents, documents);
  expect_same(checkpoint.tokenizer, content.tokenizer);
  EXPECT_EQ(checkpoint.tensors.tensors.size(), content.tensors.size());
  for (const auto& source : content.tensors) {
    const auto stored = checkpoint.tensors.find(source.name).value();
    EXPECT_EQ(stored.format, source.format);
    EXPECT_EQ(stored.shape, source.shape);
    const auto bytes = bytes_of(source);
    ASSERT_EQ(stored.bytes.size(), bytes.size());
    EXPECT_EQ(std::memcmp(stored.bytes.data(), bytes.data(), bytes.size()), 0) << source.name;
  }
}

inline std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files[entry.path().filename().string()] = read_text_file(entry.path()).value();
  }
  return files;
}

class NativeFolder : public ::testing::Test {
 protected:
  void put(const std::string& name, std::string_view text) {
    std::ofstream(model_ / name, std::ios::binary) << text;  // without a flush to disk
  }
  std::string get(const std::string& name) { return read_text_file(model_ / name).value(); }
  std::string refusal() {
    const auto checkpoint = open_checkpoint(model_);
    return checkpoint ? "" : checkpoint.error().message();
  }
  // The configuration with one value replaced.
  void set(const std::string& pointer, const Json& value) {
    auto json = Json::parse(get("oasr_config.json"));
    json[Json::json_pointer(pointer)] = value;
    put("oasr_config.json", json.dump());
  }
  fs::path model_;  // of the test
};

}  // namespace oasr
