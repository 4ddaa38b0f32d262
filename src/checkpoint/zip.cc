#include "checkpoint/zip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/byte_reader.h"
#include "checkpoint/damaged.h"

namespace oasr {
namespace {

constexpr std::uint32_t kLocalMagic = 0x04034b50;
constexpr std::uint32_t kCentralMagic = 0x02014b50;
constexpr std::uint32_t kEndMagic = 0x06054b50;
constexpr std::uint32_t kEnd64Magic = 0x06064b50;
constexpr std::uint32_t kLocator64Magic = 0x07064b50;
constexpr std::size_t kEndSize = 22, kLocator64Size = 20, kEnd64Size = 56, kCentralSize = 46;
constexpr std::uint16_t kZip64Extra = 0x0001;
constexpr std::uint32_t kIn64 = 0xFFFFFFFF;  // the value stands in the zip64 record
constexpr std::uint16_t kIn64Short = 0xFFFF;
constexpr std::uint16_t kEncrypted = 0x0001 | 0x0040 | 0x2000;
constexpr std::uint16_t kMaxNameSize = 1024;

Unexpected bad_zip(std::string what) { return damaged("zip archive", what); }

ByteReader reader_at(std::span<const std::byte> bytes, std::uint64_t offset) {
  ByteReader reader(bytes, "zip archive");
  (void)reader.seek(std::min<std::uint64_t>(offset, bytes.size()));  // past the end: read() says so
  return reader;
}

std::uint32_t magic_at(std::span<const std::byte> bytes, std::size_t offset) {
  return reader_at(bytes, offset).read<std::uint32_t>().value_or(0);
}

struct Directory {
  std::uint64_t entries = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t end = 0;  // where the end records begin: the directory must end here
};

// The end record is searched from the back, as a comment of up to 65,535 bytes may follow it.
Result<std::size_t> find_end_record(std::span<const std::byte> bytes) {
  if (bytes.size() < kEndSize) return bad_zip("too small for an end record");
  const std::size_t last = bytes.size() - kEndSize;
  const std::size_t first = last - std::min<std::size_t>(last, 0xFFFF);
  for (std::size_t at = last + 1; at-- > first;) {
    if (magic_at(bytes, at) != kEndMagic) continue;
    const auto comment = reader_at(bytes, at + kEndSize - 2).read<std::uint16_t>().value_or(0);
    if (at + kEndSize + comment == bytes.size()) return at;
  }
  return bad_zip("no end record: the file is truncated or no zip archive");
}

Result<Directory> read_directory64(std::span<const std::byte> bytes, std::size_t locator) {
  auto reader = reader_at(bytes, locator + 4);
  const auto disk = TRY(reader.read<std::uint32_t>());
  const auto offset = TRY(reader.read<std::uint64_t>());
  const auto disks = TRY(reader.read<std::uint32_t>());
  if (disk != 0 || disks > 1) return bad_zip("spread over several files");
  if (locator < kEnd64Size || offset != locator - kEnd64Size ||
      magic_at(bytes, offset) != kEnd64Magic) {
    return bad_zip("the zip64 end record is not where the locator says");
  }
  reader = reader_at(bytes, offset + 4 + 8 + 2 + 2 + 4 + 4);
  Directory directory{.end = offset};
  const auto here = TRY(reader.read<std::uint64_t>());
  directory.entries = TRY(reader.read<std::uint64_t>());
  directory.size = TRY(reader.read<std::uint64_t>());
  directory.offset = TRY(reader.read<std::uint64_t>());
  if (here != directory.entries) return bad_zip("spread over several files");
  return directory;
}

Result<Directory> read_directory(std::span<const std::byte> bytes) {
  const auto end = TRY(find_end_record(bytes));
  if (end >= kLocator64Size && magic_at(bytes, end - kLocator64Size) == kLocator64Magic) {
    return read_directory64(bytes, end - kLocator64Size);
  }
  auto reader = reader_at(bytes, end + 4);
  const auto disk = TRY(reader.read<std::uint32_t>());  // this disk, disk of the directory
  const auto here = TRY(reader.read<std::uint16_t>());
  Directory directory{.end = end};
  directory.entries = TRY(reader.read<std::uint16_t>());
  directory.size = TRY(reader.read<std::uint32_t>());
  directory.offset = TRY(reader.read<std::uint32_t>());
  if (disk != 0 || here != directory.entries) return bad_zip("spread over several files");
  return directory;
}

Status check_name(const std::string& name) {
  const auto refuse = [&](const char* why) { return bad_zip("the entry '" + name + "' " + why); };
  if (name.empty()) return bad_zip("an entry without a name");
  if (name.front() == '/') return refuse("has an absolute path");
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F || c == '\\') {
      return bad_zip("an entry has a control character or a backslash in its name");
    }
  }
  std::string_view rest = name;
  while (!rest.empty()) {
    const auto part = rest.substr(0, rest.find('/'));
    if (part == "." || part == ".." || part.empty()) return refuse("has an unclean path");
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  }
  return {};
}

struct CentralRecord {
  ZipEntry entry;
  std::uint16_t method = 0;
  std::uint64_t compressed = 0;
};

// Values of the zip64 extra field replace those that are all ones, in this order.
Status apply_zip64(CentralRecord& record, std::span<const std::byte> extra, std::uint16_t disk) {
  const std::array<std::uint64_t*, 3> fields = {&record.entry.size, &record.compressed,
                                                &record.entry.header_offset};
  if (std::none_of(fields.begin(), fields.end(), [](auto* f) { return *f == kIn64; }) &&
      disk == 0) {
    return {};
  }
  ByteReader reader(extra, "zip extra field");
  while (reader.remaining() > 0) {
    const auto id = TRY(reader.read<std::uint16_t>());
    const auto size = TRY(reader.read<std::uint16_t>());
    ByteReader values(TRY(reader.take(size)), "zip64 extra field");
    if (id != kZip64Extra) continue;
    for (auto* field : fields) {
      if (*field == kIn64) *field = TRY(values.read<std::uint64_t>());
    }
    if (disk == kIn64Short) disk = TRY(values.read<std::uint32_t>()) == 0 ? 0 : 1;
    if (disk != 0) return bad_zip("spread over several files");
    return {};
  }
  return bad_zip("the entry '" + record.entry.name + "' has no zip64 sizes");
}

Result<CentralRecord> read_central(ByteReader& reader) {
  if (TRY(reader.read<std::uint32_t>()) != kCentralMagic) {
    return bad_zip("a directory record is corrupt");
  }
  (void)TRY(reader.take(4));  // versions
  const auto flags = TRY(reader.read<std::uint16_t>());
  CentralRecord record;
  record.method = TRY(reader.read<std::uint16_t>());
  (void)TRY(reader.take(4));  // time
  record.entry.crc32 = TRY(reader.read<std::uint32_t>());
  record.compressed = TRY(reader.read<std::uint32_t>());
  record.entry.size = TRY(reader.read<std::uint32_t>());
  const auto name_size = TRY(reader.read<std::uint16_t>());
  const auto extra_size = TRY(reader.read<std::uint16_t>());
  const auto comment_size = TRY(reader.read<std::uint16_t>());
  const auto disk = TRY(reader.read<std::uint16_t>());
  (void)TRY(reader.take(6));  // attributes
  record.entry.header_offset = TRY(reader.read<std::uint32_t>());
  if (name_size > kMaxNameSize) return bad_zip("a name is longer than 1024 bytes");
  record.entry.name = TRY(reader.take_string(name_size));
  TRY(check_name(record.entry.name));
  const auto extra = TRY(reader.take(extra_size));
  (void)TRY(reader.take(comment_size));
  TRY(apply_zip64(record, extra, disk));
  if (flags & kEncrypted) return bad_zip("the entry '" + record.entry.name + "' is encrypted");
  return record;
}

// Finds the data behind the local header, which must agree with the directory.
Status locate(CentralRecord& record, std::span<const std::byte> before_directory) {
  auto& entry = record.entry;
  const auto quoted = "the entry '" + entry.name + "' ";
  if (record.method != 0 && record.method != 8) {
    return bad_zip(quoted + "is compressed with method " + std::to_string(record.method) +
               ", only stored and deflate are read");
  }
  entry.method = static_cast<ZipMethod>(record.method);
  if (entry.method == ZipMethod::stored && entry.size != record.compressed) {
    return bad_zip(quoted + "is stored with two different sizes");
  }
  auto reader = reader_at(before_directory, entry.header_offset);
  const auto magic = TRY(reader.read<std::uint32_t>());
  (void)TRY(reader.take(4));  // version, flags
  const auto method = TRY(reader.read<std::uint16_t>());
  (void)TRY(reader.take(16));  // time, CRC, sizes: may be zero here, the directory has them
  const auto name_size = TRY(reader.read<std::uint16_t>());
  const auto extra_size = TRY(reader.read<std::uint16_t>());
  if (magic != kLocalMagic || method != record.method || name_size != entry.name.size() ||
      TRY(reader.take_string(name_size)) != entry.name) {
    return bad_zip(quoted + "has a local header that disagrees with the directory");
  }
  (void)TRY(reader.take(extra_size));
  entry.data = TRY(reader.take(record.compressed));
  return {};
}

// Overlapping entries are how small archives claim to hold petabytes.
Status check_apart(const std::vector<ZipEntry>& entries, std::span<const std::byte> archive) {
  std::vector<const ZipEntry*> order;
  for (const auto& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(),
            [](auto* a, auto* b) { return a->header_offset < b->header_offset; });
  std::uint64_t end = 0;
  for (const auto* entry : order) {
    if (entry->header_offset < end) {
      return bad_zip("the entry '" + entry->name + "' overlaps another one");
    }
    end = static_cast<std::uint64_t>(entry->data.data() - archive.data()) + entry->data.size();
  }
  return {};
}

// Indices of the entries sorted by name; an error for a name that appears twice.
Result<std::vector<std::size_t>> sort_by_name(const std::vector<ZipEntry>& entries) {
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](auto a, auto b) { return entries[a].name < entries[b].name; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const auto& name = entries[order[i]].name;
    if (name == entries[order[i - 1]].name) return bad_zip("the entry '" + name + "' appears twice");
  }
  return order;
}

Result<std::vector<ZipEntry>> read_entries(std::span<const std::byte> bytes) {
  const auto directory = TRY(read_directory(bytes));
  // A prefix before the archive (self-extracting files) is refused with this, too.
  if (directory.offset > directory.end || directory.size != directory.end - directory.offset) {
    return bad_zip("the directory is not where the end record says");
  }
  if (directory.entries > directory.size / kCentralSize) return bad_zip("more entries than fit");
  ByteReader reader(bytes.subspan(directory.offset, directory.size), "zip directory");
  std::vector<ZipEntry> entries;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    auto record = TRY(read_central(reader));
    TRY(locate(record, bytes.first(directory.offset)));
    entries.push_back(std::move(record.entry));
  }
  if (reader.remaining() > 0) return bad_zip("bytes left over in the directory");
  TRY(check_apart(entries, bytes));
  return entries;
}

// One inflate stream, released on every way out.
class Inflater {
 public:
  Inflater() { ready_ = ::inflateInit2(&stream_, -MAX_WBITS) == Z_OK; }
  ~Inflater() {
    if (ready_) ::inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  bool ready() const { return ready_; }

  // Feeds `data` and hands pieces to `piece`. True at the stream's proper end, all input used.
  template <class Piece>
  Result<bool> run(std::span<const std::byte> data, const Piece& piece) {
    std::array<std::byte, 1 << 16> buffer;
    int code = Z_OK;
    while (code == Z_OK) {
      if (stream_.avail_in == 0) {  // zlib counts in 32 bits
        const auto chunk = data.first(std::min<std::size_t>(data.size(), 1u << 30));
        data = data.subspan(chunk.size());
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(chunk.data()));
        stream_.avail_in = static_cast<uInt>(chunk.size());
      }
      stream_.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream_.avail_out = static_cast<uInt>(buffer.size());
      code = ::inflate(&stream_, Z_NO_FLUSH);  // Z_BUF_ERROR when the input ends too early
      TRY(piece(std::span<const std::byte>(buffer.data(), buffer.size() - stream_.avail_out)));
    }
    return code == Z_STREAM_END && stream_.avail_in == 0 && data.empty();
  }

 private:
  z_stream stream_{};
  bool ready_ = false;
};

}  // namespace

Result<ZipArchive> ZipArchive::open(std::span<const std::byte> bytes, std::string where) {
  ZipArchive archive;
  archive.where_ = std::move(where);
  auto status = [&]() -> Status {
    archive.entries_ = TRY(read_entries(bytes));
    archive.by_name_ = TRY(sort_by_name(archive.entries_));
    return {};
  }();
  if (status) return archive;
  status.error().where = archive.where_;
  return unexpected(std::move(status).error());
}

const ZipEntry* ZipArchive::find(std::string_view name) const {
  const auto it =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [&](auto index, auto wanted) { return entries_[index].name < wanted; });
  return it == by_name_.end() || entries_[*it].name != name ? nullptr : &entries_[*it];
}

Status ZipArchive::extract(const ZipEntry& entry, std::uint64_t limit, const Sink& sink) const {
  const auto refuse = [&](const std::string& why) {
    auto error = bad_zip("the entry '" + entry.name + "' " + why);
    error.error.where = where_;
    return error;
  };
  const auto too_large = [&] {
    return refuse("is larger than " + std::to_string(limit) + " bytes");
  };
  if (entry.size > limit) return too_large();
  std::uint64_t size = 0;
  std::uint32_t crc = 0;
  const auto piece = [&](std::span<const std::byte> part) -> Status {
    size += part.size();
    if (size > entry.size) return refuse("is larger than the directory says");
    crc = static_cast<std::uint32_t>(
        ::crc32_z(crc, reinterpret_cast<const Bytef*>(part.data()), part.size()));
    return sink(part);
  };
  if (entry.method == ZipMethod::stored) {
    for (auto rest = entry.data; !rest.empty();) {
      const auto part = rest.first(std::min<std::size_t>(rest.size(), 1 << 20));
      TRY(piece(part));
      rest = rest.subspan(part.size());
    }
  } else {
    Inflater inflater;
    if (!inflater.ready()) return unexpected(ErrorCode::internal, "zlib can not start", where_);
    if (!TRY(inflater.run(entry.data, piece))) return refuse("has corrupt compressed data");
  }
  if (size != entry.size) return refuse("is smaller than the directory says");
  if (entry.crc32 != 0 && crc != entry.crc32) return refuse("has a wrong CRC-32");
  return {};
}

Result<std::string> ZipArchive::extract(const ZipEntry& entry, std::uint64_t limit) const {
  std::string text;  // grows with what really comes out, not with what the directory claims
  TRY(extract(entry, limit, [&](std::span<const std::byte> part) -> Status {
    text.append(reinterpret_cast<const char*>(part.data()), part.size());
    return {};
  }));
  return text;
}

Result<std::span<const std::byte>> ZipArchive::in_place(const ZipEntry& entry) const {
  if (entry.method != ZipMethod::stored) {
    return unexpected(ErrorCode::unsupported, "the zip entry '" + entry.name + "' is compressed",
                      where_,
                      "save the file again with torch.save, which stores tensors uncompressed");
  }
  return entry.data;
}

}  // namespace oasr
