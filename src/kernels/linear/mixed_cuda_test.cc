// linear() in mixed precision: against the sum of products of rounded operands in float64, and the bits that do not
// depend on tiles, neighbours and what lies between rows.
#include <limits>
#include <string>

#include "kernels/cuda/mixed_testing.h"
#include "kernels/cuda/testing.h"
#include "kernels/linear/cuda.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

constexpr DType kStorages[] = {DType::f32, DType::f16, DType::bf16};
constexpr float kInf = std::numeric_limits<float>::infinity();

struct Problem {
  std::int64_t m, n, k;
  DType storage = DType::f32;
  unsigned seed = 1;
  std::int64_t gap = 0;       // between rows
  std::int64_t row_step = 1;  // of the rows that are looked at
};

class MixedLinearOnGpu : public OnGpu {
 protected:
  // The numbers of a problem on both sides. Between rows is NaN.
  struct Case {
    Case(MixedLinearOnGpu& test, const Problem& p)
        : p(p),
          ldx(p.k + p.gap),
          ldy(p.n + p.gap),
          x(random_floats(p.m * ldx, p.seed)),
          rows(random_floats(p.n * p.k, p.seed + 1)),
          weight(pack_rows(rows, p.n, p.k, p.storage)),
          test_(test) {
      for (std::int64_t m = 0; m < p.m; ++m) std::fill_n(x.begin() + m * ldx + p.k, p.gap, std::nanf(""));
    }
    void place() {
      std::vector<float> row(static_cast<std::size_t>(p.k));
      for (std::int64_t n = 0; n < p.n; ++n) {  // as stored
        weight.unpack_row(n, row);
        std::copy(row.begin(), row.end(), rows.begin() + n * p.k);
      }
      weight.place(*test_.gpu_);
      there.emplace(test_.upload(x));
    }
    // Rows [first, first + count) of the product, gaps included.
    std::vector<float> product(Arithmetic arithmetic, MixedTile tile, std::int64_t first, std::int64_t count,
                               LinearArgs args = {}) {
      auto y = test_.upload(args.residual != nullptr ? residual
                                                     : std::vector<float>(static_cast<std::size_t>(count * ldy), 77.0f));
      args.x = there->data() + first * ldx;
      args.ldx = ldx;
      args.m = count;
      args.weight = &weight;
      if (args.residual != nullptr) args.residual = y.data();
      args.ldr = ldy;
      args.y = y.data();
      args.ldy = ldy;
      linear_mixed_cuda(*test_.gpu_, args, arithmetic, tile, first);
      return y.values();
    }
    std::string what(Arithmetic arithmetic, MixedTile tile) const {
      return std::string(arithmetic_name(arithmetic)) + " m " + std::to_string(p.m) + " n " + std::to_string(p.n) +
             " k " + std::to_string(p.k) + " " + std::string(dtype_name(p.storage)) + " gap " +
             std::to_string(p.gap) + " tile " + std::to_string(static_cast<int>(tile));
    }

    Problem p;
    std::int64_t ldx, ldy;
    std::vector<float> x, rows, residual;
    PackedWeight weight;
    std::optional<Array<float>> there;

   private:
    MixedLinearOnGpu& test_;
  };

  // The first output that is off by more than its bound, or nothing.
  static std::string first_wrong(const Case& c, Arithmetic arithmetic, std::span<const float> y) {
    const double u = unit_roundoff(arithmetic), least = least_error(arithmetic);
    for (std::int64_t m = 0; m < c.p.m; m += c.p.row_step) {
      for (std::int64_t n = 0; n < c.p.n; ++n) {
        double rounded = 0, magnitudes = 0, full = 0, change = 0;
        for (std::int64_t k = 0; k < c.p.k; ++k) {
          const float a = c.x[static_cast<std::size_t>(m * c.ldx + k)], w = c.rows[static_cast<std::size_t>(n * c.p.k + k)];
          const double term = double{as_operand(a, arithmetic)} * as_operand(w, arithmetic);
          rounded += term;
          magnitudes += std::abs(term);
          full += double{a} * w;
          change += (2 * u + u * u) * std::abs(double{a} * w) + 2 * least * (std::abs(a) + std::abs(w));
        }
        const float got = y[static_cast<std::size_t>(m * c.ldy + n)];
        const double sums = sum_error(c.p.k) * magnitudes;
        if (std::abs(got - rounded) <= sums && std::abs(got - full) <= sums + change) continue;
        return "row " + std::to_string(m) + " channel " + std::to_string(n) + ": " + std::to_string(got) + " for " +
               std::to_string(rounded) + ", at most " + std::to_string(sums) + " off";
      }
    }
    return {};
  }

  void expect_right(const Problem& p) {
    Case c(*this, p);
    c.place();
    for (const Arithmetic arithmetic : kMixed) {
      std::vector<float> first;
      for (const MixedTile tile : kMixedTiles) {
        const auto y = c.product(arithmetic, tile, 0, p.m);
        if (first.empty()) {
          first = y;
          EXPECT_EQ(first_wrong(c, arithmetic, y), "") << c.what(arithmetic, tile);
          for (std::int64_t m = 0; m < p.m; ++m) {
            for (std::int64_t i = 0; i < p.gap; ++i) {
              ASSERT_EQ(y[static_cast<std::size_t>(m * c.ldy + p.n + i)], 77.0f) << c.what(arithmetic, tile);
            }
          }
        }
        EXPECT_EQ(first_difference(y, first), -1) << c.what(arithmetic, tile);
      }
    }
    EXPECT_EQ(reported_row(), -1);
  }
};

class RaggedMixedLinearOnGpu : public MixedLinearOnGpu, public ::testing::WithParamInterface<std::int64_t> {};

TEST_P(RaggedMixedLinearOnGpu, IsTheSumOfProductsOfRoundedOperands) {
  const std::int64_t size = GetParam();
  unsigned seed = 1 + 3 * 4 * static_cast<unsigned>(size - 1);
  for (const std::int64_t other : {size * 7 % 67 + 1, size * 29 % 67 + 1, std::int64_t{64}, std::int64_t{130}}) {
    seed += 3;
    const std::int64_t k = (size + other) * 13 % 67 + 1, gap = seed % 3 == 0 ? 0 : (seed % 3 == 1 ? 3 : (4 - k % 4) % 4 + 4);
    expect_right({size, other, k, kStorages[seed / 3 % 3], seed, gap});
    expect_right({other, k, size, kStorages[seed / 2 % 3], seed + 1, gap});
    expect_right({k, size, other + 64, kStorages[seed / 5 % 3], seed + 2, 0});
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, RaggedMixedLinearOnGpu, ::testing::Range(std::int64_t{1}, std::int64_t{68}));

TEST_F(MixedLinearOnGpu, IsTheSumOfProductsOfRoundedOperandsOnTheModelsShapes) {
  unsigned seed = 300;
  for (const auto& [m, n, k] : {std::tuple{1500, 2048, 512},
                                {1500, 512, 2048},
                                {3000, 512, 240},
                                {1500, 512, 1536},
                                {1, 512, 512},
                                {5, 2048, 512},
                                {17, 512, 2048},
                                {40, 51'865, 512}}) {
    for (const DType storage : kStorages) {
      if (n > 10'000 && storage != DType::f16) continue;
      expect_right({m, n, k, storage, ++seed, 0, m > 100 ? 97 : n > 10'000 ? 13 : 1});
    }
  }
}

// The bits of a row: those that it has in any piece of the matrix, with any tile, and as the op chooses.
TEST_F(MixedLinearOnGpu, GivesARowTheBitsThatItHasAlone) {
  for (const DType storage : kStorages) {
    for (const std::int64_t k : {67, 512}) {
      Case c(*this, {150, 100, k, storage, 9, 4 - k % 4});
      c.place();
      for (const Arithmetic arithmetic : kMixed) {
        const auto all = c.product(arithmetic, MixedTile::m64n64, 0, 150);
        for (const auto& [first, count] : {std::pair{0, 1}, {149, 1}, {3, 2}, {63, 2}, {64, 17}, {70, 80}, {1, 149}}) {
          const auto expected = std::span(all).subspan(static_cast<std::size_t>(first * c.ldy),
                                                       static_cast<std::size_t>(count * c.ldy));
          for (const MixedTile tile : kMixedTiles) {
            EXPECT_EQ(first_difference(c.product(arithmetic, tile, first, count), expected), -1)
                << c.what(arithmetic, tile) << ", rows from " << first << ", " << count;
          }
          context_.arithmetic = arithmetic;
          auto y = upload(std::vector<float>(expected.size(), 77.0f));
          linear(context_, {.x = c.there->data() + first * c.ldx,
                            .ldx = c.ldx,
                            .m = count,
                            .weight = &c.weight,
                            .y = y.data(),
                            .ldy = c.ldy});
          EXPECT_EQ(first_difference(y.values(), expected), -1) << "chosen, rows from " << first << ", " << count;
        }
      }
    }
  }
}

// The order of sums: pieces of 128 k, each as it is in a matrix that holds only this piece, added one after another.
TEST_F(MixedLinearOnGpu, AddsPiecesInOrder) {
  constexpr std::int64_t kM = 20, kN = 70, kPiece = 128;
  unsigned seed = 500;
  for (const DType storage : kStorages) {
    for (const std::int64_t k : {128, 130, 256, 385, 512, 2048, 2053, 4112}) {
      Case c(*this, {kM, kN, k, storage, ++seed});
      c.place();
      for (const Arithmetic arithmetic : kMixed) {
        std::vector<float> expected(kM * kN, 0.0f);
        for (std::int64_t first = 0; first < k; first += kPiece) {
          const std::int64_t depth = std::min(kPiece, k - first);
          Case piece(*this, {kM, kN, depth, storage, seed});
          for (std::int64_t m = 0; m < kM; ++m) {
            std::copy_n(c.x.begin() + m * k + first, depth, piece.x.begin() + m * depth);
          }
          for (std::int64_t n = 0; n < kN; ++n) {
            std::copy_n(c.rows.begin() + n * k + first, depth, piece.rows.begin() + n * depth);
          }
          piece.weight = pack_rows(piece.rows, kN, depth, storage);
          piece.place();
          const auto sums = piece.product(arithmetic, MixedTile::m64n64, 0, kM);
          for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += sums[i];
        }
        for (const MixedTile tile : kMixedTiles) {
          EXPECT_EQ(first_difference(c.product(arithmetic, tile, 0, kM), expected), -1) << c.what(arithmetic, tile);
        }
      }
    }
  }
}

// Few rows are 1 to 8 or more in a block, of 16 or 32 channels, and one warp may have several pieces.
TEST_F(MixedLinearOnGpu, GivesFewRowsTheBitsOfTiles) {
  unsigned seed = 600;
  for (const std::int64_t n : {45, 9000}) {
    for (const std::int64_t k : {16, 129, 512, 1100, 2048, 5120}) {
      const DType storage = kStorages[++seed % 3];
      const std::int64_t gap = seed / 2 % 3 == 0 ? 0 : (seed / 2 % 3 == 1 ? 1 : 4);
      Case c(*this, {41, n, k, storage, seed, gap});
      c.place();
      for (const Arithmetic arithmetic : kMixed) {
        const auto all = c.product(arithmetic, MixedTile::m128n64, 0, 41);
        if (n < 1000) {
          EXPECT_EQ(first_wrong(c, arithmetic, all), "");
        }
        for (const std::int64_t count : {1, 2, 7, 8, 9, 16, 17, 40}) {
          const std::int64_t first = 41 - count;
          const auto got = c.product(arithmetic, MixedTile::few_rows, first, count);
          EXPECT_EQ(first_difference(got, std::span(all).subspan(static_cast<std::size_t>(first * c.ldy))), -1)
              << c.what(arithmetic, MixedTile::few_rows) << ", rows from " << first;
        }
      }
    }
  }
}

// Rows that overlap, as the fields of a convolution do, and that are rounded together or one by one.
TEST_F(MixedLinearOnGpu, TakesRowsThatOverlap) {
  for (const std::int64_t step : {8, 80, 81, 240}) {
    constexpr std::int64_t kM = 300, kN = 40, kK = 240;
    Case apart(*this, {kM, kN, kK, DType::f16, 21});
    const auto line = random_floats((kM - 1) * step + kK, 22);
    for (std::int64_t m = 0; m < kM; ++m) std::copy_n(line.begin() + m * step, kK, apart.x.begin() + m * kK);
    apart.place();
    auto there = upload(line);
    for (const Arithmetic arithmetic : kMixed) {
      const auto expected = apart.product(arithmetic, MixedTile::few_rows, 0, kM);
      EXPECT_EQ(first_wrong(apart, arithmetic, expected), "");
      for (const MixedTile tile : kMixedTiles) {
        auto y = room<float>(kM * kN);
        const LinearArgs args{
            .x = there.data(), .ldx = step, .m = kM, .weight = &apart.weight, .y = y.data(), .ldy = kN};
        linear_mixed_cuda(*gpu_, args, arithmetic, tile);
        EXPECT_EQ(first_difference(y.values(), expected), -1) << apart.what(arithmetic, tile) << " step " << step;
      }
    }
  }
}

// More rows than are rounded at once (32 MiB of operands): a residual and reports go by the row of the matrix.
TEST_F(MixedLinearOnGpu, TakesMoreRowsThanAreRoundedAtOnce) {
  constexpr std::int64_t kRounded = 16'384, kM = kRounded + 150;
  Case c(*this, {kM, 33, 1024, DType::f16, 31});
  c.x[static_cast<std::size_t>((kRounded + 120) * 1024 + 1000)] = kInf;
  c.place();
  c.residual = random_floats(kM * c.ldy, 32);
  auto few = c.residual;
  few.erase(few.begin(), few.begin() + (kRounded - 10) * c.ldy);
  LinearArgs args{.residual = few.data()};
  args.alpha = 0.5f;
  std::vector<std::vector<float>> got;
  for (const MixedTile tile : {MixedTile::m64n64, MixedTile::m128n64}) {
    got.push_back(c.product(Arithmetic::float16, tile, 0, kM, args));
    EXPECT_EQ(reported_row(), kRounded + 120);
  }
  c.residual = few;
  const auto expected = c.product(Arithmetic::float16, MixedTile::few_rows, kRounded - 10, 100, args);
  EXPECT_EQ(reported_row(), -1);
  for (const auto& y : got) {
    EXPECT_EQ(first_difference(std::span(y).subspan(static_cast<std::size_t>((kRounded - 10) * c.ldy), 100 * 33),
                               std::span(expected).first(100 * 33)),
              -1);
  }
}

// The epilogue is that of float32: on the sums, the processor's bits.
TEST_F(MixedLinearOnGpu, AddsBiasAppliesActivationsAndAddsTheResidual) {
  for (const std::int64_t n : {31, 64, 130}) {
    for (unsigned activation = 0; activation < 5; ++activation) {
      for (const bool with_residual : {false, true}) {
        Case c(*this, {70, n, 40, DType::f16, activation + 1, n == 64 ? 4 : 3});
        c.place();
        c.residual = random_floats(70 * c.ldy, 5);
        const auto bias = random_floats(n, 6);
        auto bias_there = upload(bias);
        LinearArgs args{.bias = activation == 4 ? nullptr : bias_there.data(), .activation = some_activation(activation)};
        if (with_residual) args.residual = c.residual.data();
        args.alpha = 0.3f;
        for (const Arithmetic arithmetic : kMixed) {
          auto expected = c.product(arithmetic, MixedTile::m64n64, 0, 70);
          for (std::int64_t m = 0; m < 70; ++m) {
            for (std::int64_t i = 0; i < c.ldy; ++i) {
              float& y = expected[static_cast<std::size_t>(m * c.ldy + i)];
              const float residual = c.residual[static_cast<std::size_t>(m * c.ldy + i)];
              if (i >= n) {
                if (with_residual) y = residual;
                continue;
              }
              if (args.bias != nullptr) y += bias[static_cast<std::size_t>(i)];
              y = activate(args.activation, y);
              if (with_residual) y = std::fma(0.3f, y, residual);
            }
          }
          for (const MixedTile tile : kMixedTiles) {
            EXPECT_EQ(first_difference(c.product(arithmetic, tile, 0, 70, args), expected), -1)
                << c.what(arithmetic, tile) << " activation " << activation << " residual " << with_residual;
          }
        }
      }
    }
  }
  EXPECT_EQ(reported_row(), -1);
}

TEST_F(MixedLinearOnGpu, ReportsWhatIsNotFiniteAndKeepsItInItsRow) {
  for (const float odd : {std::nanf(""), kInf, -kInf, 65'520.0f, -1e9f}) {
    for (const std::int64_t k : {67, 512}) {
      Case clean(*this, {70, 96, k, DType::f16, 8}), c(*this, {70, 96, k, DType::f16, 8});
      c.x[static_cast<std::size_t>(33 * k + 5)] = odd;
      c.x[static_cast<std::size_t>(69 * k + k - 1)] = odd;
      clean.place();
      c.place();
      for (const Arithmetic arithmetic : kMixed) {
        const bool reported = !std::isfinite(as_operand(odd, arithmetic));
        for (const MixedTile tile : kMixedTiles) {
          // relu makes 0 of -infinity: the report is all that is left of it.
          auto expected = clean.product(arithmetic, tile, 0, 70, {.activation = Activation::relu});
          EXPECT_EQ(reported_row(), -1);
          auto got = c.product(arithmetic, tile, 0, 70, {.activation = Activation::relu});
          EXPECT_EQ(reported_row(), reported ? 33 : -1) << c.what(arithmetic, tile) << " " << odd;
          const auto sums = c.product(arithmetic, tile, 0, 70);
          static_cast<void>(reported_row());
          for (const std::int64_t row : {33, 69}) {
            for (std::int64_t n = 0; n < 96; ++n) {
              const auto at = static_cast<std::size_t>(row * 96 + n);
              EXPECT_EQ(std::isfinite(sums[at]), !reported) << c.what(arithmetic, tile) << " " << odd;
              got[at] = expected[at] = 0;
            }
          }
          EXPECT_EQ(first_difference(got, expected), -1) << c.what(arithmetic, tile) << " " << odd;
        }
      }
    }
  }
}

TEST_F(MixedLinearOnGpu, ReportsWeightsThatAreTooLarge) {
  Case c(*this, {20, 40, 32, DType::f32, 3});
  auto rows = c.rows;
  rows[5 * 32 + 7] = 70'000.0f;
  c.weight = pack_rows(rows, 40, 32, DType::f32);
  c.place();
  for (const MixedTile tile : kMixedTiles) {
    const auto y = c.product(Arithmetic::float16, tile, 0, 20);
    EXPECT_EQ(reported_row(), 0);
    EXPECT_FALSE(std::isfinite(y[5]));
    EXPECT_TRUE(std::isfinite(y[4]) && std::isfinite(y[6]));
    c.product(Arithmetic::bfloat16, tile, 0, 20);
    EXPECT_EQ(reported_row(), -1);
  }
}

TEST_F(MixedLinearOnGpu, TakesNoRows) {
  Case c(*this, {1, 8, 8});
  c.place();
  linear_mixed_cuda(*gpu_, {.m = 0, .weight = &c.weight}, Arithmetic::float16, MixedTile::few_rows);
  gpu_->wait();
}

}  // namespace
}  // namespace oasr::kernels
