// One entry for every container that people have: detection by content, strict reading.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/state_dict.h"
#include "text/tokenizer.h"

namespace oasr {

struct Checkpoint {
  std::string container;  // row of the registry: "huggingface", "openai", "ctranslate2", "ggml",
                          // "wenet", "native"
  std::filesystem::path path;                // as given
  std::vector<std::filesystem::path> files;  // every file that was read
  StateDict tensors;                         // names as the container spells them
  // Texts of configuration by name, all JSON objects: "config.json", "generation_config.json",
  // "preprocessor_config.json", and what says how weights were quantized ("hf_quant_config.json",
  // "qserve.json"), as they lie in a folder. For OpenAI, CTranslate2 and ggml "dims":
  // OpenAI's ten dimensions (n_mels, n_vocab, n_audio_{ctx,state,head,layer}, n_text_{…}). For
  // CTranslate2 also "scalars" ("encoder/num_heads": 8; not among the tensors), for ggml "hparams"
  // (dims and ftype). For WeNet "train.yaml", as JSON, and "global_cmvn": {"text": the file's}. A native checkpoint has those of its source and, if it is quantized,
  // "quantization".
  std::map<std::string, std::string> documents;
  TokenizerSource tokenizer;
  // Of a native checkpoint, which was made from another one; empty for the other containers.
  std::string architecture;      // row of the architecture table: "whisper"
  std::string source_container;  // row of the container table: "huggingface"
  std::map<std::string, std::string> source_facts;
  std::vector<std::string> notes;  // "weights are stored as q5_0 and dequantized to float"

  // The container that the documents and the tokenizer come from.
  const std::string& origin() const { return source_container.empty() ? container : source_container; }
};

struct ContainerReader {
  std::string_view name;
  std::string_view what;  // "Hugging Face folder (config.json + safetensors)"
  // 0: not this container; otherwise how sure (10 layout, 20 named config, 30 keyed value).
  int (*detect)(const std::filesystem::path& path);
  Result<Checkpoint> (*read)(const std::filesystem::path& path);
};

// The table of containers.
std::span<const ContainerReader> container_readers();

// Detects and reads. Weights stay in the file (memory-mapped) where the layout allows. Errors say
// what the path is instead and which containers are read.
Result<Checkpoint> open_checkpoint(const std::filesystem::path& path);

}  // namespace oasr
