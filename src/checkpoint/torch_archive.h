// PyTorch's zip files (torch.save since 1.6): a pickle that describes, and storages beside it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "checkpoint/file_bytes.h"
#include "checkpoint/pickle.h"
#include "checkpoint/state_dict.h"
#include "checkpoint/zip.h"

namespace oasr {

class TorchArchive {
 public:
  // Reads the directory and the pickle. TorchScript programs, files of torch before 1.6,
  // big-endian files and anything else are refused by name.
  static Result<TorchArchive> open(const FileBytes& file);

  const Pickle& pickle() const { return pickle_; }

  // The items of a dict or collections.OrderedDict with text keys, in their order. An error for
  // anything else and for keys that appear twice; `what` names the object in it.
  Result<std::vector<std::pair<std::string, PickleId>>> items(PickleId id,
                                                              std::string_view what) const;

  // The tensor that a node rebuilds. Row-major views of a storage are borrowed from the file,
  // others (transposed, strided) are copied. Refuses every call that is not one of torch's ways to
  // rebuild a tensor, views that reach outside of their storage or expand it, and storages whose CRC-32 is wrong.
  Result<StoredTensor> tensor(PickleId id, std::string_view name);

  // What the tensors live in: the file and the copies.
  std::vector<std::shared_ptr<const void>> owners() const { return owners_; }

 private:
  struct View;
  Result<std::span<const PickleId>> arguments(PickleId id, std::string_view name) const;
  Result<View> view(PickleId id, std::string_view name);
  Status fill_storage(View& view, PickleId storage);
  Result<StoredTensor> copy(const View& view);

  FileBytes file_;
  ZipArchive zip_;
  std::string folder_;                       // "archive/"
  std::shared_ptr<const std::string> text_;  // of the pickle, which borrows from it
  Pickle pickle_;
  std::vector<std::shared_ptr<const void>> owners_;
  std::uint64_t copied_ = 0;  // bytes so far
  std::set<std::uint64_t> checked_;  // storages whose CRC-32 is right, by the offset of their header
};

// True for the beginning of a torch file from before 1.6, which is one bare pickle after another.
bool looks_like_legacy_torch(std::span<const std::byte> bytes);

}  // namespace oasr
