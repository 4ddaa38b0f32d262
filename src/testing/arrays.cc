#include "testing/arrays.h"

#include <zlib.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace oasr::testing {
namespace {

std::string read_bytes(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw std::runtime_error("can not open " + file.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

template <class T>
T number_at(const std::string& bytes, std::size_t offset) {
  T value;
  if (offset + sizeof(T) > bytes.size()) throw std::runtime_error("the reference file ends early");
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

double half_to_double(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

double bfloat_to_double(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

template <class T>
std::vector<double> numbers(const std::string& bytes, double (*convert)(T) = nullptr) {
  std::vector<double> values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T value = number_at<T>(bytes, i * sizeof(T));
    values[i] = convert != nullptr ? convert(value) : static_cast<double>(value);
  }
  return values;
}

std::vector<double> decode(const std::string& type, const std::string& bytes) {
  if (type == "F32" || type == "<f4") return numbers<float>(bytes);
  if (type == "F64" || type == "<f8") return numbers<double>(bytes);
  if (type == "F16" || type == "<f2") return numbers<std::uint16_t>(bytes, half_to_double);
  if (type == "BF16") return numbers<std::uint16_t>(bytes, bfloat_to_double);
  if (type == "I64" || type == "<i8") return numbers<std::int64_t>(bytes);
  if (type == "I32" || type == "<i4") return numbers<std::int32_t>(bytes);
  if (type == "I16" || type == "<i2") return numbers<std::int16_t>(bytes);
  if (type == "I8" || type == "|i1") return numbers<std::int8_t>(bytes);
  if (type == "U8" || type == "|u1" || type == "BOOL" || type == "|b1")
    return numbers<std::uint8_t>(bytes);
  throw std::runtime_error("reference array of type " + type);
}

// The numpy file `name`.npy inside a zip archive, by its central directory.
std::string npz_member(const std::string& zip, const std::string& name) {
  const std::size_t end = zip.rfind("PK\5\6");
  if (end == std::string::npos) throw std::runtime_error("not a zip archive");
  std::size_t entry = number_at<std::uint32_t>(zip, end + 16);
  for (int left = number_at<std::uint16_t>(zip, end + 10); left > 0; --left) {
    const auto method = number_at<std::uint16_t>(zip, entry + 10);
    const std::size_t packed = number_at<std::uint32_t>(zip, entry + 20);
    const std::size_t size = number_at<std::uint32_t>(zip, entry + 24);
    const std::size_t name_size = number_at<std::uint16_t>(zip, entry + 28);
    const std::size_t extra = number_at<std::uint16_t>(zip, entry + 30);
    const std::size_t comment = number_at<std::uint16_t>(zip, entry + 32);
    const std::size_t local = number_at<std::uint32_t>(zip, entry + 42);
    if (zip.substr(entry + 46, name_size) == name + ".npy") {
      const std::size_t data = local + 30 + number_at<std::uint16_t>(zip, local + 26) +
                               number_at<std::uint16_t>(zip, local + 28);
      if (method == 0) return zip.substr(data, size);
      std::string out(size, '\0');
      z_stream stream{};
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(zip.data() + data));
      stream.avail_in = static_cast<uInt>(packed);
      stream.next_out = reinterpret_cast<Bytef*>(out.data());
      stream.avail_out = static_cast<uInt>(size);
      inflateInit2(&stream, -MAX_WBITS);
      const int status = inflate(&stream, Z_FINISH);
      inflateEnd(&stream);
      if (status != Z_STREAM_END) throw std::runtime_error("a deflated array is corrupt");
      return out;
    }
    entry += 46 + name_size + extra + comment;
  }
  throw std::runtime_error("no array " + name);
}

Array read_npy(const std::string& npy) {
  const std::size_t header_size = number_at<std::uint16_t>(npy, 8);
  const std::string header = npy.substr(10, header_size);
  const std::size_t type_at = header.find("'descr': '") + 10;
  Array array;
  array.values = decode(header.substr(type_at, header.find('\'', type_at) - type_at),
                        npy.substr(10 + header_size));
  std::size_t at = header.find("'shape': (") + 10;
  while (header[at] != ')') {
    if (header[at] == ',' || header[at] == ' ') {
      ++at;
      continue;
    }
    std::size_t used = 0;
    array.shape.push_back(std::stoll(header.substr(at), &used));
    at += used;
  }
  return array;
}

}  // namespace

Array read_array(const std::filesystem::path& file, const std::string& name) {
  const std::string bytes = read_bytes(file);
  if (file.extension() == ".npz") return read_npy(npz_member(bytes, name));
  const auto header_size = number_at<std::uint64_t>(bytes, 0);
  const auto header = nlohmann::json::parse(bytes.substr(8, header_size));
  if (!header.contains(name)) throw std::runtime_error("no array " + name + " in " + file.string());
  const auto& entry = header.at(name);
  const auto offsets = entry.at("data_offsets").get<std::vector<std::uint64_t>>();
  return {entry.at("shape").get<std::vector<std::int64_t>>(),
          decode(entry.at("dtype").get<std::string>(),
                 bytes.substr(8 + header_size + offsets[0], offsets[1] - offsets[0]))};
}

std::vector<float> read_wav16(const std::filesystem::path& file) {
  const std::string bytes = read_bytes(file);
  const std::size_t data = bytes.find("data");
  if (data == std::string::npos || number_at<std::uint16_t>(bytes, 22) != 1 ||
      number_at<std::uint16_t>(bytes, 34) != 16) {
    throw std::runtime_error(file.string() + " is not 16-bit mono");
  }
  const std::size_t size =
      std::min<std::size_t>(number_at<std::uint32_t>(bytes, data + 4), bytes.size() - data - 8);
  std::vector<float> samples(size / 2);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i] = static_cast<float>(number_at<std::int16_t>(bytes, data + 8 + 2 * i)) / 32768.0f;
  }
  return samples;
}

}  // namespace oasr::testing
