// Helpers of the Whisper tests: .npz files, thread pools, greedy paths.
#pragma once

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/fs.h"
#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/zip.h"
#include "kernels/testing.h"
#include "models/whisper/state.h"
#include "models/whisper/weight_table.h"

namespace oasr::models::whisper {

// An array of NumPy's: its element type as NumPy spells it ("<f4"), shape and bytes.
struct NpyArray {
  std::string type;
  std::vector<std::int64_t> shape;
  std::string bytes;

  std::int64_t elements() const {
    std::int64_t n = 1;
    for (const std::int64_t extent : shape) n *= extent;
    return n;
  }
  template <class T>
  std::vector<T> as() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }
  std::vector<float> half_floats() const {
    std::vector<float> values;
    for (const std::uint16_t bits : as<std::uint16_t>()) values.push_back(to_float(Half{bits}));
    return values;
  }
};

// Version 1 of the .npy format: the header is a Python dictionary of three keys in a fixed order.
inline NpyArray parse_npy(const std::string& file) {
  CHECK(file.starts_with("\x93NUMPY\x01"), "not a .npy file of version 1");
  const std::size_t header_size = static_cast<unsigned char>(file[8]) |
                                  static_cast<std::size_t>(static_cast<unsigned char>(file[9])) << 8;
  const std::string header = file.substr(10, header_size);
  NpyArray array;
  const auto quoted = header.find("'descr': '") + 10;
  array.type = header.substr(quoted, header.find('\'', quoted) - quoted);
  CHECK(header.find("'fortran_order': False") != header.npos, "a .npy file in row-major order");
  std::size_t at = header.find("'shape': (") + 10;
  while (header[at] != ')') {
    std::size_t used = 0;
    array.shape.push_back(std::stoll(header.substr(at), &used));
    at += used;
    while (header[at] == ',' || header[at] == ' ') ++at;
  }
  array.bytes = file.substr(10 + header_size);
  return array;
}

// The arrays of a .npz file by name.
inline std::map<std::string, NpyArray> read_npz(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path).value();
  const auto archive = ZipArchive::open(file->bytes(), path.string()).value();
  std::map<std::string, NpyArray> arrays;
  for (const ZipEntry& entry : archive.entries()) {
    const std::string name = entry.name.substr(0, entry.name.size() - 4);
    arrays[name] = parse_npy(archive.extract(entry, std::uint64_t{1} << 30).value());
  }
  return arrays;
}

inline std::vector<float> floats_of(const StoredTensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements()));
  decode_to_float(tensor, values).value();
  return values;
}

// A network and a place to run it.
struct Runner {
  explicit Runner(std::shared_ptr<const Network> loaded, int threads = 2, int windows = 1,
                  int rows = 1, DType cross_storage = DType::f32, Isa isa = detected_isa())
      : pool(threads),
        network(std::move(loaded)),
        state(network, {.pool = &pool, .isa = isa},
              {.windows = windows,
               .rows = rows,
               .cross_storage = cross_storage,
               .alignment_heads = default_alignment_heads(network->config, true)}) {}

  // The logits after `tokens` on a row.
  std::vector<float> score(decode::RowId row, const std::vector<TokenId>& tokens) {
    std::vector<float> logits(static_cast<std::size_t>(state.vocabulary_size()));
    const decode::StepScorer::Input input{row, tokens};
    state.score({&input, 1}, logits);
    return logits;
  }

  ThreadPool pool;
  std::shared_ptr<const Network> network;
  State state;
};

inline std::shared_ptr<const Network> load_network(const std::filesystem::path& path,
                                                   const layers::WeightOptions& options = {}) {
  const Checkpoint checkpoint = open_checkpoint(path).value();
  return Network::load(read_config(checkpoint).value(), checkpoint, options).value();
}

// A byte-level tokenizer of 27 letters, Whisper's special tokens at 27 … 35 and timestamps behind them.
inline TokenizerSource tiny_tokenizer() {
  Json letters, added;
  for (int i = 0; i < 26; ++i) letters[std::string(1, static_cast<char>('a' + i))] = i;
  letters["\xC4\xA0"] = 26;  // a space in the byte alphabet
  int id = 27;
  for (const char* token : {"<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|translate|>",
                            "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>",
                            "<|notimestamps|>"}) {
    added[token] = id++;
  }
  return {.kind = "vocab_merges",
          .vocab_json = letters.dump(),
          .merges_txt = "#version: 0.2\n",
          .added_tokens_json = added.dump(),
          .origin = "vocab.json + merges.txt"};
}

// config.json of the dimensions.
inline std::string config_text(const Config& config) {
  return Json{{"model_type", "whisper"},
              {"d_model", config.d_model},
              {"encoder_layers", config.encoder_layers},
              {"encoder_attention_heads", config.encoder_attention_heads},
              {"encoder_ffn_dim", config.encoder_ffn_dim},
              {"decoder_layers", config.decoder_layers},
              {"decoder_attention_heads", config.decoder_attention_heads},
              {"decoder_ffn_dim", config.decoder_ffn_dim},
              {"vocab_size", config.vocab_size},
              {"num_mel_bins", config.num_mel_bins},
              {"max_source_positions", config.max_source_positions},
              {"max_target_positions", config.max_target_positions},
              {"tie_word_embeddings", config.tie_word_embeddings}}
      .dump();
}

// A checkpoint of small random numbers with every tensor of `config`, spelled as Hugging Face does.
struct RandomCheckpoint {
  explicit RandomCheckpoint(const Config& dimensions, unsigned seed = 1) : config(dimensions) {
    checkpoint.container = "huggingface";
    checkpoint.path = "random";
    checkpoint.documents["config.json"] = config_text(config);
    checkpoint.documents["generation_config.json"] =
        R"({"suppress_tokens": [], "begin_suppress_tokens": [26, 27], "is_multilingual": false})";
    checkpoint.tokenizer = tiny_tokenizer();
    for (const layers::ParameterSpec& spec : weight_table(config, Spelling::hugging_face)) {
      if (spec.presence != layers::ParameterSpec::Presence::required) continue;
      auto values = std::make_shared<std::vector<float>>(kernels::random_floats(
          spec.shape.elements(), seed++, spec.name.find("norm") == std::string::npos ? 0.1f : 1.0f));
      checkpoint.tensors.tensors[spec.stored] = {.format = StorageFormat::f32,
                                                 .shape = spec.shape,
                                                 .bytes = std::as_bytes(std::span(*values)),
                                                 .row_scale = {}};
      checkpoint.tensors.owners.push_back(std::move(values));
    }
  }
  std::shared_ptr<const Network> network() const {
    return Network::load(config, checkpoint, {}).value();
  }
  // Value `at` of a tensor by its Hugging Face name.
  void set(const std::string& name, std::size_t at, float value) {
    const auto bytes = checkpoint.tensors.tensors.at(name).bytes;
    std::memcpy(const_cast<std::byte*>(bytes.data()) + at * sizeof value, &value, sizeof value);
  }

  Config config;
  Checkpoint checkpoint;
};

// Writes the checkpoint as a folder that Hugging Face's libraries would read.
inline void write_hugging_face(const RandomCheckpoint& random, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::vector<TensorSource> tensors;
  for (const auto& [name, tensor] : random.checkpoint.tensors.tensors) {
    const std::size_t rows = tensor.shape.rank() < 2 ? 1 : static_cast<std::size_t>(tensor.shape[0]);
    tensors.push_back({.name = name, .format = tensor.format, .shape = tensor.shape,
                       .row = [tensor, rows](std::int64_t row, std::span<std::byte> out) {
                         const std::size_t size = tensor.bytes.size() / rows;
                         std::ranges::copy(tensor.bytes.subspan(static_cast<std::size_t>(row) * size, size),
                                           out.begin());
                       }});
  }
  write_safetensors(folder / "model.safetensors", tensors).value();
  for (const auto& [name, text] : random.checkpoint.documents) write_text_file(folder / name, text).value();
  const TokenizerSource& tokenizer = random.checkpoint.tokenizer;
  write_text_file(folder / "vocab.json", tokenizer.vocab_json).value();
  write_text_file(folder / "merges.txt", tokenizer.merges_txt).value();
  write_text_file(folder / "added_tokens.json", tokenizer.added_tokens_json).value();
}

inline Config small_config() {
  return {.d_model = 64,
          .encoder_layers = 2,
          .encoder_attention_heads = 4,
          .encoder_ffn_dim = 96,
          .decoder_layers = 2,
          .decoder_attention_heads = 2,
          .decoder_ffn_dim = 128,
          .vocab_size = 301,
          .num_mel_bins = 80,
          .max_source_positions = 60,
          .max_target_positions = 200};
}

inline TokenId argmax(std::span<const float> scores) {
  return static_cast<TokenId>(std::ranges::max_element(scores) - scores.begin());
}

}  // namespace oasr::models::whisper
