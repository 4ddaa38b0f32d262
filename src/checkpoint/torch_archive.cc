#include "checkpoint/torch_archive.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

namespace oasr {
namespace {

constexpr std::uint64_t kMaxPickle = std::uint64_t{32} << 20;
constexpr std::uint64_t kMaxMark = 64;  // bytes of the entry "byteorder"
constexpr int kMaxWrappers = 4;         // a Parameter around a tensor around …

Unexpected bad_torch(std::string what) {
  return unexpected(ErrorCode::bad_checkpoint, "PyTorch file: " + std::move(what));
}

struct StorageRow {
  std::string_view storage;  // torch.<…>; empty: only as a dtype
  std::string_view dtype;
  StorageFormat format;
};
constexpr std::array kStorages = {
    StorageRow{"DoubleStorage", "float64", StorageFormat::f64},
    StorageRow{"FloatStorage", "float32", StorageFormat::f32},
    StorageRow{"HalfStorage", "float16", StorageFormat::f16},
    StorageRow{"BFloat16Storage", "bfloat16", StorageFormat::bf16},
    StorageRow{"LongStorage", "int64", StorageFormat::i64},
    StorageRow{"IntStorage", "int32", StorageFormat::i32},
    StorageRow{"ShortStorage", "int16", StorageFormat::i16},
    StorageRow{"CharStorage", "int8", StorageFormat::i8},
    StorageRow{"ByteStorage", "uint8", StorageFormat::u8},
    StorageRow{"BoolStorage", "bool", StorageFormat::boolean},
    StorageRow{"", "uint16", StorageFormat::u16},
    StorageRow{"", "uint32", StorageFormat::u32},
    StorageRow{"", "uint64", StorageFormat::u64},
    StorageRow{"", "float8_e4m3fn", StorageFormat::f8_e4m3},
    StorageRow{"", "float8_e5m2", StorageFormat::f8_e5m2},
};

std::uint64_t item_size(StorageFormat format) { return *storage_bytes(format, Shape{1}); }

// The folder that holds data.pkl: the first part of every entry's name.
Result<std::string> find_folder(const ZipArchive& zip) {
  for (const auto& entry : zip.entries()) {
    const auto slash = entry.name.find('/');
    if (slash != entry.name.npos && entry.name.substr(slash) == "/data.pkl") {
      return entry.name.substr(0, slash + 1);
    }
  }
  return unexpected(ErrorCode::unsupported,
                    "is a zip archive without a data.pkl, so not from torch.save");
}

Status check_kind(const ZipArchive& zip, const std::string& folder) {
  const auto is_code = [&](const ZipEntry& entry) {
    return entry.name.starts_with(folder + "code/");
  };
  if (zip.find(folder + "constants.pkl") != nullptr ||
      std::any_of(zip.entries().begin(), zip.entries().end(), is_code)) {
    return unexpected(ErrorCode::unsupported,
                      "is a TorchScript program, not a checkpoint of weights", {},
                      "give the file that it was exported from");
  }
  if (const auto* order = zip.find(folder + "byteorder")) {
    const auto text = TRY(zip.extract(*order, kMaxMark));
    if (text != "little") {
      return unexpected(ErrorCode::unsupported, "was written on a machine with big-endian numbers",
                        {}, "save it again on a little-endian machine");
    }
  }
  return {};
}

bool is_row_major(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& stride) {
  std::int64_t expected = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] != 1 && stride[axis] != expected) return false;
    expected *= shape[axis];
  }
  return true;
}

}  // namespace

// A tensor as its pickle describes it: checked to lie inside its storage.
struct TorchArchive::View {
  std::string name;
  std::optional<StorageFormat> dtype;  // as an argument of the rebuild, for untyped storages
  StorageFormat format = StorageFormat::f32;
  std::span<const std::byte> storage;
  std::uint64_t numel = 0;   // of the storage
  std::uint64_t offset = 0;  // elements
  std::vector<std::int64_t> extents, stride;
  Shape shape;

  // No index may leave the storage, and no element may be counted more often than the storage has
  // elements: a stride of 0 would make a small file fill the memory.
  Status check() const {
    const auto refuse = [&](const char* why) { return bad_torch("the tensor '" + name + "' " + why); };
    if (shape.elements() == 0) return {};
    std::uint64_t last = offset;
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      std::uint64_t reach = 0;
      if (stride[axis] < 0) return refuse("has a negative stride");
      if (__builtin_mul_overflow(static_cast<std::uint64_t>(extents[axis] - 1),
                                 static_cast<std::uint64_t>(stride[axis]), &reach) ||
          __builtin_add_overflow(last, reach, &last)) {
        return refuse("reaches outside of its storage");
      }
    }
    if (last >= numel) return refuse("reaches outside of its storage");
    if (static_cast<std::uint64_t>(shape.elements()) > numel) return refuse("expands its storage");
    return {};
  }
};

Result<TorchArchive> TorchArchive::open(const FileBytes& file) {
  const auto read = [&]() -> Result<TorchArchive> {
    if (looks_like_legacy_torch(file.bytes)) {
      return unexpected(
          ErrorCode::unsupported, "is a PyTorch file in the format from before version 1.6", {},
          "save it again with torch.save(torch.load(path), path) in a current PyTorch");
    }
    TorchArchive archive;
    archive.file_ = file;
    archive.owners_.push_back(file.owner);
    archive.zip_ = TRY(ZipArchive::open(file.bytes, file.where()));
    archive.folder_ = TRY(find_folder(archive.zip_));
    TRY(check_kind(archive.zip_, archive.folder_));
    const auto* pickle = archive.zip_.find(archive.folder_ + "data.pkl");
    archive.text_ =
        std::make_shared<const std::string>(TRY(archive.zip_.extract(*pickle, kMaxPickle)));
    archive.pickle_ =
        TRY(Pickle::parse(std::as_bytes(std::span(archive.text_->data(), archive.text_->size()))));
    return archive;
  };
  return located(read(), file.where());
}

Result<std::vector<std::pair<std::string, PickleId>>> TorchArchive::items(
    PickleId id, std::string_view what) const {
  const auto& node = pickle_[id];
  const bool ordered = node.kind == PickleKind::call &&
                       pickle_.is_global(node.items[0], "collections", "OrderedDict");
  if (node.kind != PickleKind::dict && !ordered) {
    return bad_torch(std::string(what) + " is " + pickle_.describe(id) +
               ", not a dict; it was not called or loaded");
  }
  if (ordered && !pickle_[node.items[1]].items.empty()) {
    return bad_torch(std::string(what) + " is built in an unknown way");
  }
  std::vector<std::pair<std::string, PickleId>> pairs;
  std::set<std::string_view> names;
  for (std::size_t at = ordered ? 2 : 0; at + 1 < node.items.size(); at += 2) {
    const auto& key = pickle_[node.items[at]];
    if (key.kind != PickleKind::text) {
      return bad_torch(std::string(what) + " has " + pickle_.describe(node.items[at]) + " as a key");
    }
    if (!names.insert(key.text).second) {
      return bad_torch(std::string(what) + " has the key '" + std::string(key.text) + "' twice");
    }
    pairs.emplace_back(key.text, node.items[at + 1]);
  }
  return pairs;
}

// The arguments of the call that rebuilds a tensor, behind the wrappers that may surround it:
// _rebuild_parameter(data, …) and _rebuild_from_type_v2(function, type, arguments, state).
Result<std::span<const PickleId>> TorchArchive::arguments(PickleId id,
                                                          std::string_view name) const {
  const auto refuse = [&](const std::string& what) {
    return bad_torch("'" + std::string(name) + "' is " + what + ", not a tensor; it was not called");
  };
  if (pickle_[id].kind != PickleKind::call) return refuse(pickle_.describe(id));
  PickleId callee = pickle_[id].items[0], tuple = pickle_[id].items[1];
  for (int wrappers = 0; wrappers < kMaxWrappers; ++wrappers) {
    const auto& items = pickle_[tuple].items;
    if (pickle_[tuple].kind != PickleKind::tuple) break;
    for (const char* rebuild : {"_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3"}) {
      if (pickle_.is_global(callee, "torch._utils", rebuild)) {
        return std::span<const PickleId>(items);
      }
    }
    if (pickle_.is_global(callee, "torch._utils", "_rebuild_parameter") && !items.empty()) {
      const auto& inner = pickle_[items[0]];
      if (inner.kind != PickleKind::call) {
        return refuse("a parameter around " + pickle_.describe(items[0]));
      }
      callee = inner.items[0];
      tuple = inner.items[1];
    } else if (pickle_.is_global(callee, "torch._tensor", "_rebuild_from_type_v2") &&
               items.size() >= 3) {
      callee = items[0];
      tuple = items[2];
    } else {
      break;
    }
  }
  return refuse("a call of " + pickle_.describe(callee));
}

// ("storage", torch.<T>Storage, key, location, numel). An UntypedStorage counts bytes; its dtype
// must be known already.
Status TorchArchive::fill_storage(View& view, PickleId storage) {
  const auto refuse = [&](const std::string& why) {
    return bad_torch("the storage of '" + view.name + "' " + why);
  };
  const auto& reference = pickle_[storage];
  if (reference.kind != PickleKind::persistent) return refuse("is " + pickle_.describe(storage));
  const auto& items = pickle_[reference.items[0]].items;
  if (items.size() != 5 || pickle_[items[0]].text != "storage" ||
      pickle_[items[2]].kind != PickleKind::text || pickle_[items[4]].kind != PickleKind::integer) {
    return refuse("has an unknown description");
  }
  const bool untyped = pickle_.is_global(items[1], "torch.storage", "UntypedStorage");
  if (untyped) {
    if (!view.dtype) return refuse("has elements of a type that is not read");
    view.format = *view.dtype;
  } else {
    const auto row = std::find_if(kStorages.begin(), kStorages.end(), [&](const StorageRow& r) {
      return !r.storage.empty() && pickle_.is_global(items[1], "torch", r.storage);
    });
    if (row == kStorages.end()) {
      return refuse("has the type " + pickle_.describe(items[1]) + ", which is not read");
    }
    view.format = row->format;
  }
  const auto key = "data/" + std::string(pickle_[items[2]].text);
  const auto* entry = zip_.find(folder_ + key);
  if (entry == nullptr) return refuse("(" + key + ") is missing");
  view.storage = TRY(zip_.in_place(*entry));
  if (!checked_.contains(entry->header_offset)) {  // tensors can share it
    TRY(zip_.extract(*entry, entry->size, [](std::span<const std::byte>) { return Status{}; }));
    checked_.insert(entry->header_offset);
  }
  const auto size = item_size(view.format);
  view.numel = view.storage.size() / size;
  const auto claimed = pickle_[items[4]].integer;
  if (claimed < 0 || view.storage.size() % size != 0 ||
      static_cast<std::uint64_t>(claimed) != (untyped ? view.storage.size() : view.numel)) {
    return refuse("has " + std::to_string(view.storage.size()) + " bytes, not " +
                  std::to_string(claimed) +
                  (untyped ? " bytes" : " elements of " + std::to_string(size) + " bytes"));
  }
  return {};
}

// (storage, offset, size, stride[, requires_grad, hooks[, dtype in v3][, metadata]])
Result<TorchArchive::View> TorchArchive::view(PickleId id, std::string_view name) {
  const auto items = TRY(arguments(id, name));
  View view;
  view.name = name;
  const auto refuse = [&] {
    return bad_torch("the tensor '" + view.name + "' has an unknown description");
  };
  const auto numbers = [&](PickleId from, std::vector<std::int64_t>& out) {
    // A shape is a tuple, or a call of torch.Size with one.
    const auto& node = pickle_[from];
    const bool size =
        node.kind == PickleKind::call && pickle_.is_global(node.items[0], "torch", "Size");
    const auto& arguments = pickle_[size ? node.items[1] : from];
    const auto& tuple =
        size && arguments.items.size() == 1 ? pickle_[arguments.items[0]] : arguments;
    if (tuple.kind != PickleKind::tuple || tuple.items.size() > Shape::kMaxRank) return false;
    for (const auto item : tuple.items) {
      if (pickle_[item].kind != PickleKind::integer) return false;
      out.push_back(pickle_[item].integer);
    }
    return true;
  };
  if (items.size() < 4 || pickle_[items[1]].kind != PickleKind::integer ||
      pickle_[items[1]].integer < 0) {
    return refuse();
  }
  view.offset = static_cast<std::uint64_t>(pickle_[items[1]].integer);
  if (!numbers(items[2], view.extents) || !numbers(items[3], view.stride)) return refuse();
  if (items.size() > 6) {
    for (const auto& row : kStorages) {
      if (pickle_.is_global(items[6], "torch", row.dtype)) view.dtype = row.format;
    }
  }
  TRY(fill_storage(view, items[0]));
  const auto shape = Shape::checked(view.extents);
  if (!shape || view.stride.size() != view.extents.size()) return refuse();
  view.shape = *shape;
  TRY(view.check());
  return view;
}

Result<StoredTensor> TorchArchive::copy(const View& view) {
  const auto size = item_size(view.format);
  const auto elements = static_cast<std::uint64_t>(view.shape.elements());
  copied_ += elements * size;  // each at most one storage: can not overflow before it is refused
  if (copied_ > file_.bytes.size()) return bad_torch("has views that expand to more than the file");
  auto buffer = std::make_shared<std::vector<std::byte>>(elements * size);
  std::array<std::int64_t, Shape::kMaxRank> index{};
  for (std::uint64_t i = 0; i < elements; ++i) {
    std::uint64_t at = view.offset;
    for (std::size_t axis = 0; axis < view.extents.size(); ++axis) {
      at += static_cast<std::uint64_t>(index[axis] * view.stride[axis]);
    }
    std::memcpy(buffer->data() + i * size, view.storage.data() + at * size, size);
    for (std::size_t axis = view.extents.size();
         axis-- > 0 && ++index[axis] == view.extents[axis];) {
      index[axis] = 0;
    }
  }
  owners_.push_back(buffer);
  return StoredTensor{view.format, view.shape, *buffer, {}};
}

Result<StoredTensor> TorchArchive::tensor(PickleId id, std::string_view name) {
  const auto read = [&]() -> Result<StoredTensor> {
    const auto from = TRY(view(id, name));
    if (from.shape.elements() == 0) return StoredTensor{from.format, from.shape, {}, {}};
    if (!is_row_major(from.extents, from.stride)) return copy(from);
    const auto size = item_size(from.format);
    const auto bytes = static_cast<std::uint64_t>(from.shape.elements()) * size;
    return StoredTensor{
        from.format, from.shape, from.storage.subspan(from.offset * size, bytes), {}};
  };
  return located(read(), file_.where());
}

bool looks_like_legacy_torch(std::span<const std::byte> bytes) {
  // PROTO, LONG1 of 10 bytes: 0x1950a86a20f9469cfc6c.
  constexpr std::array<unsigned char, 14> kBegin = {0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c,
                                                    0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};
  return bytes.size() >= kBegin.size() &&
         std::memcmp(bytes.data(), kBegin.data(), kBegin.size()) == 0;
}

}  // namespace oasr
