#include "checkpoint/pickle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <unordered_map>
#include <utility>

#include "base/byte_reader.h"
#include "base/check.h"
#include "checkpoint/damaged.h"

namespace oasr {
namespace {

constexpr std::size_t kMaxNodes = std::size_t{1} << 21;

Unexpected bad_pickle(std::string what) { return damaged("pickle", what); }

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Two's complement, little-endian, of any length up to 8 bytes.
std::int64_t to_integer(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    value |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
  }
  if (!bytes.empty() && bytes.size() < 8 && (bytes.back() & std::byte{0x80}) != std::byte{0}) {
    value |= ~std::uint64_t{0} << (8 * bytes.size());
  }
  return static_cast<std::int64_t>(value);
}

}  // namespace

// The stack machine. `marks_` holds the stack's height at each open MARK.
class PickleMachine {
 public:
  explicit PickleMachine(std::span<const std::byte> bytes)
      : bytes_(bytes), reader_(bytes, "pickle") {}

  Result<Pickle> run() {
    while (!stopped_) TRY(step(TRY(reader_.read<std::uint8_t>())));
    if (stack_.size() != 1 || !marks_.empty()) return bad_pickle("ends with a stack of the wrong height");
    pickle_.root_ = stack_.back();
    return std::move(pickle_);
  }

 private:
  using Operation = Status (PickleMachine::*)();
  struct Opcode {
    std::uint8_t code;
    Operation run;
  };
  static std::array<Operation, 256> operations();

  Status step(std::uint8_t code) {
    static const auto kOperations = operations();
    if (const auto run = kOperations[code]) return (this->*run)();
    std::array<char, 8> hex{};
    std::snprintf(hex.data(), hex.size(), "0x%02x", code);
    return bad_pickle(std::string("the opcode ") + hex.data() + " at byte " +
               std::to_string(reader_.offset() - 1) + " is not one that checkpoints use");
  }

  Status push(PickleNode node) {
    if (pickle_.nodes_.size() >= kMaxNodes) return bad_pickle("more than 2,097,152 objects");
    stack_.push_back(static_cast<PickleId>(pickle_.nodes_.size()));
    pickle_.nodes_.push_back(std::move(node));
    return {};
  }
  Status push_kind(PickleKind kind, std::vector<PickleId> items = {}) {
    PickleNode node;
    node.kind = kind;
    node.items = std::move(items);
    return push(std::move(node));
  }
  Status push_integer(std::int64_t value, PickleKind kind = PickleKind::integer) {
    PickleNode node;
    node.kind = kind;
    node.integer = value;
    return push(std::move(node));
  }
  Status push_text(std::uint64_t size, PickleKind kind) {
    PickleNode node;
    node.kind = kind;
    node.text = as_text(TRY(reader_.take(size)));
    return push(std::move(node));
  }

  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  Result<PickleId> pop() {
    if (stack_.size() <= floor()) return bad_pickle("takes from an empty stack");
    const auto id = stack_.back();
    stack_.pop_back();
    return id;
  }
  Result<std::vector<PickleId>> pop_to_mark() {
    if (marks_.empty()) return bad_pickle("a MARK is missing");
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickleId> items(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return items;
  }
  // The node on top, to which items are added.
  Result<PickleNode*> top() {
    if (stack_.size() <= floor()) return bad_pickle("takes from an empty stack");
    return &pickle_.nodes_[stack_.back()];
  }

  // The top `size` objects as one of `kind`.
  Status gather(std::size_t size, PickleKind kind) {
    std::vector<PickleId> items(size);
    for (auto at = items.rbegin(); at != items.rend(); ++at) *at = TRY(pop());
    return push_kind(kind, std::move(items));
  }
  Status extend(std::vector<PickleId> items, bool pairs) {
    auto* node = TRY(top());
    const bool open = node->kind == PickleKind::call;
    const bool fits = pairs ? node->kind == PickleKind::dict
                            : node->kind == PickleKind::list || node->kind == PickleKind::set;
    if (!open && !fits) return bad_pickle("adds items to what can hold none");
    if (pairs && items.size() % 2 != 0) return bad_pickle("a key without a value");
    node->items.insert(node->items.end(), items.begin(), items.end());
    return {};
  }
  Status put(std::uint64_t key) {
    if (stack_.size() <= floor()) return bad_pickle("remembers an empty stack");
    memo_[key] = stack_.back();
    return {};
  }
  Status get(std::uint64_t key) {
    const auto it = memo_.find(key);
    if (it == memo_.end()) return bad_pickle("recalls what was never remembered");
    stack_.push_back(it->second);
    return {};
  }
  Result<std::string_view> line() {
    const auto rest = as_text(bytes_.subspan(reader_.offset()));
    const auto end = rest.find('\n');
    if (end == rest.npos) return bad_pickle("a line without an end");
    (void)TRY(reader_.take(end + 1));
    return rest.substr(0, end);
  }
  Status push_global(std::string_view module, std::string_view name) {
    PickleNode node;
    node.kind = PickleKind::global;
    node.text = module;
    node.name = name;
    return push(std::move(node));
  }

  Status op_proto() {
    const auto version = TRY(reader_.read<std::uint8_t>());
    return version <= 5 ? Status() : bad_pickle("protocol " + std::to_string(version));
  }
  Status op_frame() {
    const auto size = TRY(reader_.read<std::uint64_t>());
    return size <= reader_.remaining() ? Status() : bad_pickle("a frame larger than the file");
  }
  Status op_stop() { return stopped_ = true, Status(); }
  Status op_mark() { return marks_.push_back(stack_.size()), Status(); }
  Status op_pop() {
    if (stack_.size() > floor()) return stack_.pop_back(), Status();
    if (marks_.empty()) return bad_pickle("takes from an empty stack");
    return marks_.pop_back(), Status();
  }
  Status op_pop_mark() { return (void)TRY(pop_to_mark()), Status(); }
  Status op_none() { return push_kind(PickleKind::none); }
  Status op_true() { return push_integer(1, PickleKind::boolean); }
  Status op_false() { return push_integer(0, PickleKind::boolean); }
  Status op_binint() { return push_integer(TRY(reader_.read<std::int32_t>())); }
  Status op_binint1() { return push_integer(TRY(reader_.read<std::uint8_t>())); }
  Status op_binint2() { return push_integer(TRY(reader_.read<std::uint16_t>())); }
  Status op_long1() { return push_long(TRY(reader_.read<std::uint8_t>())); }
  Status op_long4() { return push_long(TRY(reader_.read<std::uint32_t>())); }
  Status push_long(std::uint64_t size) {  // longer than 64 bits: kept as its bytes
    if (size > 8) return push_text(size, PickleKind::bytes);
    return push_integer(to_integer(TRY(reader_.take(size))));
  }
  Status op_binfloat() {
    std::uint64_t bits = 0;
    for (const auto byte : TRY(reader_.take(8))) {
      bits = bits << 8 | static_cast<std::uint64_t>(byte);
    }
    PickleNode node;
    node.kind = PickleKind::real;
    node.real = std::bit_cast<double>(bits);
    return push(std::move(node));
  }
  Status op_text1() { return push_text(TRY(reader_.read<std::uint8_t>()), PickleKind::text); }
  Status op_text4() { return push_text(TRY(reader_.read<std::uint32_t>()), PickleKind::text); }
  Status op_text8() { return push_text(TRY(reader_.read<std::uint64_t>()), PickleKind::text); }
  Status op_bytes1() { return push_text(TRY(reader_.read<std::uint8_t>()), PickleKind::bytes); }
  Status op_bytes4() { return push_text(TRY(reader_.read<std::uint32_t>()), PickleKind::bytes); }
  Status op_bytes8() { return push_text(TRY(reader_.read<std::uint64_t>()), PickleKind::bytes); }
  Status op_empty_tuple() { return push_kind(PickleKind::tuple); }
  Status op_tuple() { return push_kind(PickleKind::tuple, TRY(pop_to_mark())); }
  Status op_tuple1() { return gather(1, PickleKind::tuple); }
  Status op_tuple2() { return gather(2, PickleKind::tuple); }
  Status op_tuple3() { return gather(3, PickleKind::tuple); }
  Status op_empty_list() { return push_kind(PickleKind::list); }
  Status op_list() { return push_kind(PickleKind::list, TRY(pop_to_mark())); }
  Status op_append() { return extend({TRY(pop())}, false); }
  Status op_appends() { return extend(TRY(pop_to_mark()), false); }
  Status op_empty_dict() { return push_kind(PickleKind::dict); }
  Status op_dict() {
    auto items = TRY(pop_to_mark());
    if (items.size() % 2 != 0) return bad_pickle("a key without a value");
    return push_kind(PickleKind::dict, std::move(items));
  }
  Status op_setitem() {
    const auto value = TRY(pop());
    return extend({TRY(pop()), value}, true);
  }
  Status op_setitems() { return extend(TRY(pop_to_mark()), true); }
  Status op_empty_set() { return push_kind(PickleKind::set); }
  Status op_frozenset() { return push_kind(PickleKind::set, TRY(pop_to_mark())); }
  Status op_put1() { return put(TRY(reader_.read<std::uint8_t>())); }
  Status op_put4() { return put(TRY(reader_.read<std::uint32_t>())); }
  Status op_memoize() { return put(memo_.size()); }
  Status op_get1() { return get(TRY(reader_.read<std::uint8_t>())); }
  Status op_get4() { return get(TRY(reader_.read<std::uint32_t>())); }
  Status op_global() {
    const auto module = TRY(line());
    return push_global(module, TRY(line()));
  }
  Status op_stack_global() {
    const auto& name = pickle_.nodes_[TRY(pop())];
    const auto& module = pickle_.nodes_[TRY(pop())];
    if (name.kind != PickleKind::text || module.kind != PickleKind::text) {
      return bad_pickle("a global without a name");
    }
    return push_global(module.text, name.text);
  }
  Status op_call() { return gather(2, PickleKind::call); }       // callable, arguments
  Status op_newobj_ex() { return (void)TRY(pop()), op_call(); }  // keyword arguments on top
  Status op_build() {
    return (void)TRY(pop()), (void)TRY(top()), Status();
  }  // state: never applied
  Status op_persid() { return push_kind(PickleKind::persistent, {TRY(pop())}); }

  std::span<const std::byte> bytes_;
  ByteReader reader_;
  Pickle pickle_;
  std::vector<PickleId> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, PickleId> memo_;
  bool stopped_ = false;
};

// By the names of Python's pickletools. DUP, EXT*, INST, OBJ, PERSID and the text forms of protocol
// 0 are left out: no writer of checkpoints uses them.
std::array<PickleMachine::Operation, 256> PickleMachine::operations() {
  using M = PickleMachine;
  constexpr std::array kRows = {
      Opcode{0x80, &M::op_proto},         // PROTO
      Opcode{0x95, &M::op_frame},         // FRAME
      Opcode{'.', &M::op_stop},           // STOP
      Opcode{'(', &M::op_mark},           // MARK
      Opcode{'0', &M::op_pop},            // POP
      Opcode{'1', &M::op_pop_mark},       // POP_MARK
      Opcode{'N', &M::op_none},           // NONE
      Opcode{0x88, &M::op_true},          // NEWTRUE
      Opcode{0x89, &M::op_false},         // NEWFALSE
      Opcode{'J', &M::op_binint},         // BININT
      Opcode{'K', &M::op_binint1},        // BININT1
      Opcode{'M', &M::op_binint2},        // BININT2
      Opcode{0x8A, &M::op_long1},         // LONG1
      Opcode{0x8B, &M::op_long4},         // LONG4
      Opcode{'G', &M::op_binfloat},       // BINFLOAT
      Opcode{'X', &M::op_text4},          // BINUNICODE
      Opcode{0x8C, &M::op_text1},         // SHORT_BINUNICODE
      Opcode{0x8D, &M::op_text8},         // BINUNICODE8
      Opcode{'U', &M::op_text1},          // SHORT_BINSTRING
      Opcode{'T', &M::op_text4},          // BINSTRING
      Opcode{'C', &M::op_bytes1},         // SHORT_BINBYTES
      Opcode{'B', &M::op_bytes4},         // BINBYTES
      Opcode{0x8E, &M::op_bytes8},        // BINBYTES8
      Opcode{0x96, &M::op_bytes8},        // BYTEARRAY8
      Opcode{')', &M::op_empty_tuple},    // EMPTY_TUPLE
      Opcode{'t', &M::op_tuple},          // TUPLE
      Opcode{0x85, &M::op_tuple1},        // TUPLE1
      Opcode{0x86, &M::op_tuple2},        // TUPLE2
      Opcode{0x87, &M::op_tuple3},        // TUPLE3
      Opcode{']', &M::op_empty_list},     // EMPTY_LIST
      Opcode{'l', &M::op_list},           // LIST
      Opcode{'a', &M::op_append},         // APPEND
      Opcode{'e', &M::op_appends},        // APPENDS
      Opcode{'}', &M::op_empty_dict},     // EMPTY_DICT
      Opcode{'d', &M::op_dict},           // DICT
      Opcode{'s', &M::op_setitem},        // SETITEM
      Opcode{'u', &M::op_setitems},       // SETITEMS
      Opcode{0x8F, &M::op_empty_set},     // EMPTY_SET
      Opcode{0x90, &M::op_appends},       // ADDITEMS
      Opcode{0x91, &M::op_frozenset},     // FROZENSET
      Opcode{'q', &M::op_put1},           // BINPUT
      Opcode{'r', &M::op_put4},           // LONG_BINPUT
      Opcode{0x94, &M::op_memoize},       // MEMOIZE
      Opcode{'h', &M::op_get1},           // BINGET
      Opcode{'j', &M::op_get4},           // LONG_BINGET
      Opcode{'c', &M::op_global},         // GLOBAL
      Opcode{0x93, &M::op_stack_global},  // STACK_GLOBAL
      Opcode{'R', &M::op_call},           // REDUCE
      Opcode{0x81, &M::op_call},          // NEWOBJ
      Opcode{0x92, &M::op_newobj_ex},     // NEWOBJ_EX
      Opcode{'b', &M::op_build},          // BUILD
      Opcode{'Q', &M::op_persid},         // BINPERSID
  };
  std::array<Operation, 256> table{};
  for (const auto& row : kRows) table[row.code] = row.run;
  return table;
}

Result<Pickle> Pickle::parse(std::span<const std::byte> bytes) {
  return PickleMachine(bytes).run();
}

bool Pickle::is_global(PickleId id, std::string_view module, std::string_view name) const {
  const auto& node = nodes_[id];
  return node.kind == PickleKind::global && node.text == module && node.name == name;
}

std::string Pickle::describe(PickleId id) const {
  const auto& node = nodes_[id];
  const auto spelled = [](const PickleNode& global) {  // from the file: keep it short and printable
    std::string name =
        std::string(global.text.substr(0, 100)) + "." + std::string(global.name.substr(0, 100));
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c > 0x7E; }, '?');
    return name;
  };
  switch (node.kind) {
    case PickleKind::none:
      return "None";
    case PickleKind::boolean:
      return "a truth value";
    case PickleKind::integer:
      return "a whole number";
    case PickleKind::real:
      return "a number";
    case PickleKind::text:
      return "a text";
    case PickleKind::bytes:
      return "bytes";
    case PickleKind::tuple:
      return "a tuple";
    case PickleKind::list:
      return "a list";
    case PickleKind::set:
      return "a set";
    case PickleKind::dict:
      return "a dict";
    case PickleKind::global:
      return spelled(node);
    case PickleKind::persistent:
      return "a storage";
    case PickleKind::call: {
      const auto& callee = nodes_[node.items[0]];
      return callee.kind == PickleKind::global ? "a call of " + spelled(callee)
                                               : std::string("a call of a computed object");
    }
  }
  CHECK(false, "a pickle node without a description");
}

}  // namespace oasr
