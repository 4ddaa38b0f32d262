// The rows of the container table, and what they share.
#pragma once

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "checkpoint/file_bytes.h"
#include "checkpoint/foreign_w4.h"

namespace oasr {

// How sure a detection is (ContainerReader::detect).
inline constexpr int kNotThis = 0, kByLayout = 10, kByConfig = 20, kByContent = 30;

// kByConfig: an oasr_config.json that is broken, or says another format.
int detect_native(const std::filesystem::path& path);
Result<Checkpoint> read_native(const std::filesystem::path& path);

// What is read of a folder beside weights and tokenizer; the last two say how weights were quantized.
inline constexpr std::array kHuggingFaceDocuments = {"config.json", "generation_config.json",
                                                     "preprocessor_config.json", "hf_quant_config.json",
                                                     kQServeDocument};
int detect_huggingface(const std::filesystem::path& path);
Result<Checkpoint> read_huggingface(const std::filesystem::path& path);

int detect_ctranslate2(const std::filesystem::path& path);
Result<Checkpoint> read_ctranslate2(const std::filesystem::path& path);

int detect_openai(const std::filesystem::path& path);
Result<Checkpoint> read_openai(const std::filesystem::path& path);
// The same from bytes (OpenAI's checkpoints are one file).
Result<Checkpoint> read_openai(const FileBytes& file);

int detect_ggml(const std::filesystem::path& path);
Result<Checkpoint> read_ggml(const std::filesystem::path& path);
Result<Checkpoint> read_ggml(const FileBytes& file);

int detect_wenet(const std::filesystem::path& path);
Result<Checkpoint> read_wenet(const std::filesystem::path& path);

// Whisper's dimensions by OpenAI's names, in the order of its checkpoints.
inline constexpr std::array<std::string_view, 10> kDimNames = {
    "n_mels",        "n_vocab",    "n_audio_ctx",  "n_audio_state", "n_audio_head",
    "n_audio_layer", "n_text_ctx", "n_text_state", "n_text_head",   "n_text_layer"};
using Dims = std::array<std::int64_t, kDimNames.size()>;  // in the order of kDimNames

// {"n_mels": 80, …}
std::string dims_json(const Dims& dims);

// False also for what can not be looked at.
bool path_exists(const std::filesystem::path& path);

// The path itself if it is a folder, else the one that holds it.
std::filesystem::path folder_of(const std::filesystem::path& path);

// The first `size` bytes of a file, fewer if it is shorter or can not be read.
std::string first_bytes(const std::filesystem::path& path, std::size_t size);

// Adds a JSON document of the folder to the checkpoint, if it exists: checks that it is an object.
Status add_document(Checkpoint& checkpoint, const std::filesystem::path& folder,
                    const std::string& name);

// What lies at `path`, for the error of a path that no container takes ("a GGUF file").
std::string describe_path(const std::filesystem::path& path);

// Whose torch file has these keys at its top level ("a WeNet checkpoint"); empty: unknown.
std::string_view torch_kind(std::span<const std::string> keys);

}  // namespace oasr
