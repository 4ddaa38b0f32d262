// Which slot of a KvPool holds which row: reordering rows moves names, not memory, where it can.
#pragma once

#include <span>
#include <vector>

#include "cache/kv_pool.h"
#include "decode/step_scorer.h"

namespace oasr::cache {

// Rows are named by small integers that stay the same while their contents move between slots.
// Not thread-safe; allocates at creation only.
class RowTable {
 public:
  explicit RowTable(int rows);

  // A free row on a free slot, belonging to `window`; all rows in use is a bug of the caller.
  decode::RowId open(int window);
  void close(decode::RowId row);

  bool is_open(decode::RowId row) const {
    return row >= 0 && row < static_cast<int>(rows_.size()) && rows_[static_cast<std::size_t>(row)].open;
  }
  int slot(decode::RowId row) const { return entry(row).slot; }
  int window(decode::RowId row) const { return entry(row).window; }

  // rows[i] takes over what parents[i] held. The first child of a parent that is itself replaced
  // inherits its slot; the others get a slot nobody holds any more, and a copy to make. The copies
  // are valid until the next call; no slot is both a source and a target.
  std::span<const KvPool::Copy> reorder(std::span<const decode::RowId> rows,
                                        std::span<const decode::RowId> parents);

 private:
  struct Row {
    int slot = 0;
    int window = 0;
    bool open = false;
    bool replaced = false;  // during reorder(): the row is among the children
  };
  const Row& entry(decode::RowId row) const;

  std::vector<Row> rows_;
  std::vector<KvPool::Copy> copies_;
  std::vector<int> parent_slots_, child_slots_;
  std::vector<bool> inherited_;  // by slot
};

}  // namespace oasr::cache
