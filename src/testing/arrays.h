// Arrays of reference files (.npz, .safetensors) and samples of plain WAV files, for tests only:
// short readers of files that we trust, independent of the library's own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace oasr::testing {

// An array as double, whatever its type in the file (f2, f4, f8, i1 to i8, u1).
struct Array {
  std::vector<std::int64_t> shape;
  std::vector<double> values;  // row-major

  std::vector<float> floats() const { return {values.begin(), values.end()}; }
};

// The array `name` of a .npz (stored or deflated) or .safetensors file. Throws
// std::runtime_error if it can not be read: the test fails with its message.
Array read_array(const std::filesystem::path& file, const std::string& name);

// The samples of a 16-bit mono PCM WAV file, divided by 32768.
std::vector<float> read_wav16(const std::filesystem::path& file);

}  // namespace oasr::testing
