#include "cache/row_table.h"

#include "base/check.h"

namespace oasr::cache {

RowTable::RowTable(int rows) : rows_(static_cast<std::size_t>(rows)), inherited_(rows_.size()) {
  for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i].slot = static_cast<int>(i);
  copies_.reserve(rows_.size());
  parent_slots_.reserve(rows_.size());
  child_slots_.reserve(rows_.size());
}

const RowTable::Row& RowTable::entry(decode::RowId row) const {
  CHECK(is_open(row), "row " + std::to_string(row) + " is not open");
  return rows_[static_cast<std::size_t>(row)];
}

decode::RowId RowTable::open(int window) {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].open) continue;
    rows_[i].open = true;
    rows_[i].window = window;
    return static_cast<decode::RowId>(i);
  }
  CHECK(false, "more rows than the state was made for");
}

void RowTable::close(decode::RowId row) {
  CHECK(is_open(row), "closing a row that is not open");
  rows_[static_cast<std::size_t>(row)].open = false;
}

std::span<const KvPool::Copy> RowTable::reorder(std::span<const decode::RowId> rows,
                                                std::span<const decode::RowId> parents) {
  CHECK(rows.size() == parents.size() && rows.size() <= rows_.size(), "a parent for each row");
  copies_.clear();
  parent_slots_.clear();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(window(rows[i]) == window(parents[i]), "rows of different windows");
    Row& row = rows_[static_cast<std::size_t>(rows[i])];
    CHECK(!row.replaced, "a row is named twice");
    row.replaced = true;
    parent_slots_.push_back(slot(parents[i]));
  }
  // Slots are only handed over from rows that are replaced: parents that live on keep theirs.
  child_slots_.assign(rows.size(), -1);
  inherited_.assign(rows_.size(), false);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto parent_slot = static_cast<std::size_t>(parent_slots_[i]);
    if (!rows_[static_cast<std::size_t>(parents[i])].replaced || inherited_[parent_slot]) continue;
    inherited_[parent_slot] = true;
    child_slots_[i] = parent_slots_[i];
  }
  std::size_t next_free = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (child_slots_[i] >= 0) continue;
    while (inherited_[static_cast<std::size_t>(slot(rows[next_free]))]) ++next_free;
    child_slots_[i] = slot(rows[next_free++]);
    copies_.push_back({.from = parent_slots_[i], .to = child_slots_[i]});
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Row& row = rows_[static_cast<std::size_t>(rows[i])];
    row.slot = child_slots_[i];
    row.replaced = false;
  }
  return copies_;
}

}  // namespace oasr::cache
