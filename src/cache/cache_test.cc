#include <gtest/gtest.h>

#include <map>

#include "base/check.h"
#include "cache/row_table.h"
#include "kernels/testing.h"

namespace oasr::cache {
namespace {

TEST(RowTable, ReordersWithoutACopyWhenEveryParentHasOneChild) {
  RowTable table(3);
  const std::vector<decode::RowId> rows = {table.open(0), table.open(0), table.open(0)};
  const std::vector<decode::RowId> parents = {rows[1], rows[2], rows[0]};
  const std::vector<int> slots = {table.slot(rows[1]), table.slot(rows[2]), table.slot(rows[0])};
  EXPECT_TRUE(table.reorder(rows, parents).empty());
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(table.slot(rows[i]), slots[i]);
}

TEST(RowTable, CopiesOncePerSurplusChildIntoSlotsThatNobodyHolds) {
  RowTable table(4);
  std::vector<decode::RowId> rows;
  for (int i = 0; i < 4; ++i) rows.push_back(table.open(0));
  const auto copies = table.reorder(rows, std::vector<decode::RowId>{rows[2], rows[2], rows[2], rows[0]});
  EXPECT_EQ(copies.size(), 2u);
}

TEST(RowTable, LeavesAParentThatIsNotReplacedInItsSlot) {
  RowTable table(3);
  const auto kept = table.open(0), child = table.open(0);
  const int slot = table.slot(kept);
  const auto copies = table.reorder(std::vector{child}, std::vector{kept});
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].from, slot);
  EXPECT_EQ(table.slot(kept), slot);
  EXPECT_NE(table.slot(child), slot);
}

TEST(RowTable, RefusesRowsOfDifferentWindowsAndRowsThatAreNotOpen) {
  RowTable table(3);
  const auto a = table.open(0), b = table.open(1);
  EXPECT_THROW(table.reorder(std::vector{a}, std::vector{b}), InternalError);
  EXPECT_THROW(table.slot(2), InternalError);
  EXPECT_THROW(table.close(7), InternalError);
}

// Contents follow names through random reorders: a row's content is modelled by one number.
TEST(RowTable, MovesContentsAsAPlainCopyOfAllRowsWould) {
  RowTable table(6);
  std::vector<decode::RowId> rows;
  for (int i = 0; i < 6; ++i) rows.push_back(table.open(0));
  std::map<int, int> slots;  // slot -> content
  std::map<decode::RowId, int> expected;
  for (const auto row : rows) expected[row] = slots[table.slot(row)] = row;
  std::uint32_t random = 7;
  for (int round = 0; round < 2000; ++round) {
    std::vector<decode::RowId> children, parents;
    for (const auto row : rows) {
      random = random * 1664525u + 1013904223u;
      if (random >> 30 == 0) continue;
      children.push_back(row);
      parents.push_back(rows[(random >> 16) % rows.size()]);
    }
    const auto before = expected;
    for (std::size_t i = 0; i < children.size(); ++i) expected[children[i]] = before.at(parents[i]);
    for (const KvPool::Copy& copy : table.reorder(children, parents)) slots[copy.to] = slots.at(copy.from);
    for (const auto row : rows) ASSERT_EQ(slots.at(table.slot(row)), expected.at(row));
    if (round % 10 == 0) {  // new contents, so that rows stay distinct
      for (const auto row : rows) expected[row] = slots[table.slot(row)] = round * 10 + row;
    }
  }
}

TEST(KvPool, CopiesAndTruncatesAllLayersOfASlot) {
  ThreadPool threads(2);
  ExecContext context{.pool = &threads, .isa = detected_isa()};
  KvPool pool({.slots = 2, .layers = 3, .heads = 2, .head_dim = 8, .capacity = 20, .storage = DType::f32});
  const auto k = kernels::random_floats(5 * 16, 1), v = kernels::random_floats(5 * 16, 2);
  for (int layer = 0; layer < 3; ++layer) {
    kernels::kv_append(context, pool.at(0, layer), k.data(), 16, v.data(), 16, 5);
  }
  const KvPool::Copy copy{0, 1};
  pool.copy(context, {&copy, 1});
  EXPECT_EQ(pool.length(1), 5);
  const auto q = kernels::random_floats(16, 3);
  std::vector<float> a(16), b(16);
  for (int layer = 0; layer < 3; ++layer) {
    for (const auto& [slot, out] : {std::pair{0, &a}, std::pair{1, &b}}) {
      kernels::attention_reference({.q = q.data(), .ldq = 16, .queries = 1, .kv = &pool.at(slot, layer),
                                    .out = out->data(), .ldo = 16});
    }
    EXPECT_EQ(a, b);
  }
  pool.truncate(1, 2);
  EXPECT_EQ(pool.length(1), 2);
  EXPECT_EQ(pool.length(0), 5);
  EXPECT_THROW(pool.truncate(1, 3), InternalError);
}

}  // namespace
}  // namespace oasr::cache
