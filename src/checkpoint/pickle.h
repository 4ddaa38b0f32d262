// Python pickles as inert data. Nothing is imported, called or constructed: a global is its name, a
// call is a node that holds what would have been called and with what. Whoever reads the tree
// decides which calls mean something (torch_archive.h) and refuses the others by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace oasr {

using PickleId = std::uint32_t;  // of a node of its Pickle

enum class PickleKind : std::uint8_t {
  none,
  boolean,
  integer,
  real,
  text,
  bytes,
  tuple,
  list,
  set,         // items
  dict,        // items: key, value, key, value, …
  global,      // text: "module.name"
  persistent,  // items: [id]; a reference to something outside the pickle
  call,        // items: [callable, arguments, then what was appended or set as key, value]
};

struct PickleNode {
  PickleKind kind = PickleKind::none;
  std::int64_t integer = 0;  // also boolean
  double real = 0;
  std::string_view text;  // text, bytes, global (of which `module` is the first part)
  std::string_view name;  // global: the second part
  std::vector<PickleId> items;
};

// The nodes of one pickle. The graph may have cycles: walk it by known depth, not by recursion.
class Pickle {
 public:
  // Parses protocol 0 to 5 as far as torch.save and its kin write it; an opcode outside of that is
  // an error that names it. Texts are borrowed from `bytes`. Memory is bounded by a multiple of
  // the pickle's size, and the number of nodes by 2^21.
  static Result<Pickle> parse(std::span<const std::byte> bytes);

  const PickleNode& operator[](PickleId id) const { return nodes_[id]; }
  PickleId root() const { return root_; }

  // True for a global of this module and name.
  bool is_global(PickleId id, std::string_view module, std::string_view name) const;

  // A node in words for errors: "a call of os.system", "a list".
  std::string describe(PickleId id) const;

 private:
  friend class PickleMachine;
  std::vector<PickleNode> nodes_;
  PickleId root_ = 0;
};

}  // namespace oasr
