// safetensors: u64 header size, a JSON header, then the data of all tensors without a hole.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "checkpoint/file_bytes.h"
#include "checkpoint/state_dict.h"

namespace oasr {

inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;  // bytes

// A tensor's name may have at most 512 bytes and no control characters, and must not be the key of
// the header's free text.
bool is_safetensors_name(std::string_view name);

// "F32": the format's name in the header; nothing for formats that safetensors files can not hold.
std::optional<std::string_view> safetensors_dtype(StorageFormat format);

// Reads one file. Tensors are borrowed from `file`; nothing is copied. Every byte of the file must
// belong to the header or to exactly one tensor; offsets, shapes, names, duplicate keys and the
// header's structure are checked as strictly as by the reference, and names and ranks more so.
Result<StateDict> read_safetensors(const FileBytes& file);

// The names of the tensors in a file's header, whatever else is wrong with the file.
Result<std::set<std::string, std::less<>>> safetensors_names(const FileBytes& file);

// Reads the shards that an index (model.safetensors.index.json) names, all in its folder. Each
// tensor must be in the shard that the index says and nowhere else. `files` receives the shards.
Result<StateDict> read_safetensors_shards(const std::filesystem::path& index,
                                          std::vector<std::filesystem::path>& files);

// True for the plain name of a .safetensors file beside the file that names it.
bool is_safetensors_file_name(std::string_view name);

// True if the bytes begin as a safetensors file does.
bool looks_like_safetensors(std::span<const std::byte> bytes);

}  // namespace oasr
