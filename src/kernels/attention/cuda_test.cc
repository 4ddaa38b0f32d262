#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <ostream>

#include "kernels/attention/cuda.h"
#include "kernels/attention/cuda_testing.h"
#include "kernels/cuda/testing.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

struct Geometry {
  int heads;
  int head_dim;
  std::int64_t queries;
  std::int64_t length;
  bool causal = false;
  DType storage = DType::f32;
  bool positions = false;
};

std::ostream& operator<<(std::ostream& out, const Geometry& g) {
  return out << g.heads << " heads of " << g.head_dim << ", " << g.queries << " queries, length " << g.length
             << (g.causal ? ", causal, " : ", ") << dtype_name(g.storage)
             << (g.positions ? ", positions" : "");
}

// A cache on the host and the same on the GPU; 0xFF (NaN) where nothing is stored.
class TwoCaches {
 public:
  TwoCaches(Gpu& gpu, const Geometry& g, std::int64_t capacity)
      : here_(kv_cache_bytes(g.heads, g.head_dim, capacity, g.storage)),
        there_(&gpu, here_.size()),
        gpu_(&gpu) {
    std::fill_n(here_.data(), here_.size(), std::byte{0xFF});
    gpu.upload(there_.data(), here_.data(), here_.size());
    host = {.heads = g.heads,
            .head_dim = g.head_dim,
            .capacity = capacity,
            .length = 0,
            .storage = g.storage,
            .data = here_.data()};
    device = host;
    device.data = there_.data();
  }
  // The index of the first number that differs, or -1; of what is stored, or of all memory: a GPU leaves zeros in the
  // free positions of the last panel.
  std::int64_t first_difference(bool stored_only) {
    EXPECT_EQ(host.length, device.length);
    std::vector<std::byte> bytes(there_.size());
    gpu_->download(bytes.data(), there_.data(), bytes.size());
    const KvLayout layout(host);
    const auto number = [&](const std::byte* data, std::int64_t at) {
      return host.storage == DType::f32 ? reinterpret_cast<const float*>(data)[at]
                                        : to_float(reinterpret_cast<const Half*>(data)[at]);
    };
    const std::int64_t positions = stored_only ? host.length : layout.rows;
    const std::int64_t begun = (host.length + kKeys - 1) / kKeys * kKeys;
    for (std::int64_t head = 0; head < host.heads; ++head) {
      for (std::int64_t j = 0; j < positions; ++j) {
        const bool zero = j >= host.length && j < begun;
        const auto differ = [&](std::int64_t there, std::int64_t here) {
          return !same_bits(number(bytes.data(), there), zero ? 0.0f : number(here_.data(), here));
        };
        for (std::int64_t d = 0; d < host.head_dim; ++d) {
          const std::int64_t key = layout.key(head, j, d), values = layout.values(head) - layout.keys(head);
          if (differ(key, key)) return key;
          if (differ(key + values, layout.value(head, j, d))) return key + values;  // in panels, too
        }
      }
    }
    return -1;
  }
  void poison() { poison_free_positions(*gpu_, device); }

  KvCache host, device;

 private:
  AlignedBuffer here_;
  Memory there_;
  Gpu* gpu_;
};

class AttentionOnGpu : public OnGpu {
 protected:
  // A problem with its memory on both sides; rows have gaps, so that a write or read out of place is seen.
  struct Case {
    Case(AttentionOnGpu& test, const Geometry& g, unsigned seed, float scale = 0.125f)
        : test(test),
          g(g),
          width(std::int64_t{g.heads} * g.head_dim),
          scale(scale),
          q(random_floats(g.queries * (width + 3), seed, 2.0f)),
          k(random_floats(g.length * (width + 1), seed + 1, 2.0f)),
          v(random_floats(g.length * (width + 2), seed + 2)),
          q_position(random_floats(g.queries * (width + 3), seed + 7, 2.0f)),
          position_keys(random_floats((g.length + 3) * width, seed + 8, 2.0f)),
          shifts(random_floats(2 * width, seed + 9)),
          shifted(seed % 2 != 0),
          kv(*test.gpu_, g, g.length + 5),
          positions(*test.gpu_, g, g.length + 40) {}

    void fill() {
      k_there.emplace(*test.gpu_, k);
      v_there.emplace(*test.gpu_, v);
      kv_append(test.host_, kv.host, k.data(), width + 1, v.data(), width + 2, g.length);
      kv_append(test.context_, kv.device, k_there->data(), width + 1, v_there->data(), width + 2, g.length);
      if (g.positions) {
        Array<float> keys_there(*test.gpu_, position_keys);
        kv_append(test.host_, positions.host, position_keys.data(), width, nullptr, 0, g.length + 3);
        kv_append(test.context_, positions.device, keys_there.data(), width, nullptr, 0, g.length + 3);
        test.gpu_->wait();
        positions.poison();
      }
      EXPECT_EQ(kv.first_difference(false), -1) << "the cache of " << g;
      kv.poison();
      q_there.emplace(*test.gpu_, q);
      q_position_there.emplace(*test.gpu_, q_position);
      shifts_there.emplace(*test.gpu_, shifts);
    }
    std::vector<float> empty_out() const {
      return std::vector<float>(static_cast<std::size_t>(g.queries * (width + 5)), 77.0f);
    }
    std::vector<float> empty_weights() const {
      return std::vector<float>(static_cast<std::size_t>(g.heads * g.queries * g.length), 77.0f);
    }
    AttentionArgs args(bool device, float* out, float* weights) {
      const auto position = [&] { return device ? q_position_there->data() : q_position.data(); };
      const float* shift = device ? shifts_there->data() : shifts.data();
      return {.q = device ? q_there->data() : q.data(),
              .ldq = width + 3,
              .queries = g.queries,
              .kv = device ? &kv.device : &kv.host,
              .causal = g.causal,
              .scale = scale,
              .q_position = g.positions ? position() : nullptr,
              .positions = !g.positions ? nullptr
                           : device     ? &positions.device
                                        : &positions.host,
              .q_shift = shifted ? shift : nullptr,
              .q_position_shift = shifted ? shift + width : nullptr,
              .out = out,
              .ldo = width + 5,
              .weights = weights};
    }

    AttentionOnGpu& test;
    Geometry g;
    std::int64_t width;
    float scale;
    std::vector<float> q, k, v, q_position, position_keys;
    std::vector<float> shifts;  // of queries, then of second ones
    bool shifted;
    TwoCaches kv, positions;
    std::optional<Array<float>> q_there, k_there, v_there, q_position_there, shifts_there;
  };

  // Compares outputs with and without weights written, and weights.
  void expect_the_hosts_bits(Case& test) {
    test.fill();
    auto out = test.empty_out(), weights = test.empty_weights();
    attention(host_, std::vector{test.args(false, out.data(), weights.data())});
    for (const bool with_weights : {true, false}) {
      auto out_there = upload(test.empty_out()), weights_there = upload(test.empty_weights());
      attention(context_, std::vector{test.args(true, out_there.data(),
                                                with_weights ? weights_there.data() : nullptr)});
      const auto found = out_there.values();
      const std::int64_t at = first_difference(found, out);
      EXPECT_EQ(at, -1) << test.g << ", weights " << with_weights << ": "
                        << (at < 0 ? 0.0f : found[static_cast<std::size_t>(at)]) << " for "
                        << (at < 0 ? 0.0f : out[static_cast<std::size_t>(at)]);
      EXPECT_EQ(first_difference(weights_there.values(), with_weights ? weights : test.empty_weights()), -1)
          << "weights of " << test.g;
    }
  }

  ThreadPool threads_{8};
  ExecContext host_{&threads_, detected_isa()};
};

constexpr int kHeadDims[] = {8, 24, 64, 72, 128};
constexpr std::int64_t kQueries[] = {1, 2, 3, 4, 5, 9, 15, 16, 17, 33, 63, 64, 65, 127, 130};
constexpr std::int64_t kLengths[] = {1, 2, 15, 16, 17, 63, 64, 65, 127, 130, 200};

class RaggedAttentionOnGpu : public AttentionOnGpu,
                             public ::testing::WithParamInterface<std::tuple<int, std::int64_t>> {};

TEST_P(RaggedAttentionOnGpu, EqualsTheHost) {
  const auto [head_dim, queries] = GetParam();
  const unsigned place = place_in(kHeadDims, head_dim) * std::size(kQueries) + place_in(kQueries, queries);
  unsigned seed = 1 + 3 * 2 * static_cast<unsigned>(std::size(kLengths)) * place;
  for (const std::int64_t length : kLengths) {
    for (const DType storage : {DType::f32, DType::f16}) {
      seed += 3;
      const bool causal = seed % 2 == 0 && queries <= length;
      Case test(*this, {2, head_dim, queries, length, causal, storage, seed % 5 < 2}, seed);
      expect_the_hosts_bits(test);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Shapes, RaggedAttentionOnGpu,
                         ::testing::Combine(::testing::ValuesIn(kHeadDims), ::testing::ValuesIn(kQueries)));

TEST_F(AttentionOnGpu, EqualsTheReferenceWithoutTheHostsLanes) {
  for (const Geometry& g :
       {Geometry{2, 64, 3, 70, true}, {2, 64, 70, 130, true, DType::f16, true}, {1, 40, 20, 90}}) {
    Case test(*this, g, 5);
    test.fill();
    auto out = test.empty_out();
    attention_reference(test.args(false, out.data(), nullptr));
    auto out_there = upload(test.empty_out());
    attention(context_, std::vector{test.args(true, out_there.data(), nullptr)});
    EXPECT_EQ(first_difference(out_there.values(), out), -1) << g;
  }
}

const Geometry kModelsShapes[] = {
    {8, 64, 1500, 1500},
    {8, 64, 1, 1500, false, DType::f16},
    {8, 64, 5, 1500, false, DType::f16},
    {8, 64, 64, 1500, false, DType::f16},
    {8, 64, 1, 448, true},
    {8, 64, 64, 448, true},
    {4, 64, 300, 300, false, DType::f32, true},
    {4, 64, 16, 80, false, DType::f32, true},
    {1, 64, 4, 20'000},
    {1, 64, 1, 30'000, false, DType::f16},
    {1, 512, 4, 300},
    // More blocks of four queries than run at once: blocks of eight, numerators in shared and in device memory.
    {4, 64, 512, 512, false, DType::f32, true},
    {8, 64, 83, 1500, true, DType::f16},
    {16, 40, 41, 90, true, DType::f16, true},
    {16, 40, 37, 90},
    {8, 64, 80, 3000, false, DType::f32, true},
    {8, 24, 90, 3000, true, DType::f16},
    {1, 8, 700, 5000}};

class ModelsAttentionOnGpu : public AttentionOnGpu, public ::testing::WithParamInterface<Geometry> {};

TEST_P(ModelsAttentionOnGpu, EqualsTheHostEveryTime) {
  Case test(*this, GetParam(), 7);
  test.fill();
  auto out = test.empty_out();
  attention(host_, std::vector{test.args(false, out.data(), nullptr)});
  for (int i = 0; i < 3; ++i) {
    auto out_there = upload(test.empty_out());
    attention(context_, std::vector{test.args(true, out_there.data(), nullptr)});
    EXPECT_EQ(first_difference(out_there.values(), out), -1) << test.g << ", run " << i;
  }
}

// Cards of sm_86, 89 and 120 have 99 KiB, and every other one has more.
TEST_P(ModelsAttentionOnGpu, EqualsTheHostWithTheLeastSharedMemory) {
  if (GetParam().head_dim > 256) GTEST_SKIP() << "heads that take more";
  Case test(*this, GetParam(), 7);
  test.fill();
  auto out = test.empty_out();
  attention(host_, std::vector{test.args(false, out.data(), nullptr)});
  auto out_there = upload(test.empty_out());
  attention_cuda(*gpu_, std::vector{test.args(true, out_there.data(), nullptr)}, Arithmetic::float32, 99 << 10);
  EXPECT_EQ(first_difference(out_there.values(), out), -1) << test.g;
}
INSTANTIATE_TEST_SUITE_P(Shapes, ModelsAttentionOnGpu, ::testing::ValuesIn(kModelsShapes));

TEST_F(AttentionOnGpu, EqualsTheHostForWideScores) {
  for (const float scale : {1e-6f, 3.0f, 50.0f, -2.0f}) {  // exponents far below -87 among them
    for (const std::int64_t queries : {1, 3, 40}) {
      Case test(*this, {2, 64, queries, 100}, 77, scale);
      expect_the_hosts_bits(test);
    }
  }
}

TEST_F(AttentionOnGpu, PassesNanInfinityAndHugeValuesLikeTheHost) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float odd : {kInf, -kInf, std::nanf(""), 3e38f, 1e-45f, -1e-40f, -0.0f}) {
    for (const int where : {0, 1, 2, 3}) {
      for (const std::int64_t queries : {1, 3, 20}) {
        for (const DType storage : {DType::f32, DType::f16}) {
          Case test(*this, {2, 16, queries, 40, true, storage, where == 3}, 5);
          (where == 0 ? test.q : where == 1 ? test.k : where == 2 ? test.v : test.position_keys)[19] = odd;
          if (where == 2) test.v[39 * 34 + 3] = odd;  // that only the last query sees
          expect_the_hosts_bits(test);
        }
      }
    }
  }
}

// What is below zero by less than a float can say stays -0 through chains that see no more.
TEST_F(AttentionOnGpu, KeepsTheSignOfZero) {
  for (const std::int64_t queries : {1, 3, 70}) {
    Case test(*this, {1, 8, queries, 70, true}, 5);
    for (std::size_t i = 0; i < test.v.size(); ++i) test.v[i] = i % 3 == 0 ? -1e-45f : -0.0f;
    expect_the_hosts_bits(test);
  }
}

TEST_F(AttentionOnGpu, TakesManySequencesOfAllKindsAtOnce) {
  std::vector<std::unique_ptr<Case>> cases;
  for (int i = 0; i < 300; ++i) {
    const std::int64_t queries = i % 7 == 0 ? 20 + i % 60 : i % 3 == 0 ? 3 : 1;
    cases.push_back(
        std::make_unique<Case>(*this,
                               Geometry{2, i > 250 ? 24 : 64, queries, queries + i % 90, i % 2 == 0,
                                        i % 50 == 3 ? DType::f16 : DType::f32, i % 4 == 1},
                               static_cast<unsigned>(i)));
  }
  std::vector<std::vector<float>> expected;
  std::vector<Array<float>> found;
  std::vector<AttentionArgs> here, there;
  for (auto& test : cases) {
    test->fill();
    expected.push_back(test->empty_out());
    found.push_back(upload(test->empty_out()));
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    here.push_back(cases[i]->args(false, expected[i].data(), nullptr));
    there.push_back(cases[i]->args(true, found[i].data(), nullptr));
  }
  attention(host_, here);
  attention(context_, there);
  attention(context_, {});
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(first_difference(found[i].values(), expected[i]), -1)
        << "sequence " << i << ": " << cases[i]->g;
  }
}

class KvCacheOnGpu : public AttentionOnGpu {};

TEST_F(KvCacheOnGpu, AppendsOddNumbersAndPieces) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float odd[] = {kInf, -kInf, 65519.0f, 65520.0f, 1e-45f, 3e-8f, -6e-8f, 0x1.004p0f, 0x1.00cp0f, -0.0f};
  for (const DType storage : {DType::f32, DType::f16}) {
    for (const std::int64_t piece : {1, 3, 7, 16, 20, 33}) {
      const Geometry g{3, 72, 1, 100, false, storage};
      const std::int64_t width = 216;
      TwoCaches a(*gpu_, g, 100), b(*gpu_, g, 112);  // two in a call, at other lengths
      auto k = random_floats(100 * (width + 1), 3), v = random_floats(100 * (width + 2), 4);
      std::copy(std::begin(odd), std::end(odd), k.begin());
      std::copy(std::begin(odd), std::end(odd), v.begin() + 5);
      auto k_there = upload(k), v_there = upload(v);
      for (std::int64_t at = 0; at + piece <= 100; at += piece) {
        const auto append = [&](ExecContext& context, KvCache& first, KvCache& second, const float* keys,
                                const float* values) {
          const std::array args = {AppendArgs{.kv = &first,
                                              .k = keys + at * (width + 1),
                                              .ldk = width + 1,
                                              .v = values + at * (width + 2),
                                              .ldv = width + 2,
                                              .count = piece},
                                   AppendArgs{.kv = &second,
                                              .k = keys + at * (width + 1),
                                              .ldk = width + 1,
                                              .v = values + at * (width + 2),
                                              .ldv = width + 2,
                                              .count = piece == 7 && at == 14 ? 0 : (piece + 1) / 2}};
          kv_append(context, args);
        };
        append(host_, a.host, b.host, k.data(), v.data());
        append(context_, a.device, b.device, k_there.data(), v_there.data());
      }
      EXPECT_EQ(a.first_difference(false), -1) << dtype_name(storage) << " pieces of " << piece;
      EXPECT_EQ(b.first_difference(false), -1) << dtype_name(storage) << " half pieces of " << piece;
    }
  }
}

TEST_F(KvCacheOnGpu, CopiesAndDropsLikeTheHost) {
  for (const DType storage : {DType::f32, DType::f16}) {
    for (const int head_dim : {8, 64}) {
      Case test(*this, {2, head_dim, 1, 150, false, storage}, 9);
      test.fill();
      for (const std::int64_t length : {0, 1, 16, 33, 150}) {
        TwoCaches first(*gpu_, test.g, 150), second(*gpu_, test.g, 161);
        const auto copy = [&](ExecContext& context, const KvCache& from, KvCache& a, KvCache& b) {
          kv_copy(context, std::array{CopyArgs{&from, &a, length}, CopyArgs{&from, &b, length / 2}});
        };
        copy(host_, test.kv.host, first.host, second.host);
        copy(context_, test.kv.device, first.device, second.device);
        EXPECT_EQ(first.first_difference(true), -1) << length;
        EXPECT_EQ(second.first_difference(true), -1) << length;
        for (const std::int64_t dropped : {0, 1, 5, 16, 20, 32, 77}) {
          if (dropped > first.host.length) continue;
          const auto drop = [&](ExecContext& context, KvCache& a, KvCache& b) {
            kv_drop_front(context,
                          std::array{DropArgs{&a, dropped}, DropArgs{&b, std::min(b.length, dropped / 3)}});
          };
          drop(host_, first.host, second.host);
          drop(context_, first.device, second.device);
          EXPECT_EQ(first.first_difference(true), -1) << length << " without " << dropped;
          EXPECT_EQ(second.first_difference(true), -1) << length << " without " << dropped;
        }
      }
    }
  }
}

}  // namespace
}  // namespace oasr::kernels
