// int8 products on the matrix units (mma.sync), for scaled_mm/cuda.cu.
//
// A block of threads computes a tile [kM, kN] of the output. Slices of A and W, kDepth bytes of k each, go
// through a ring of kStages buffers in shared memory by cp.async; ldmatrix hands them to the warps as the
// operands of mma.m16n8k32. Warps divide the tile, and with kWarpsK > 1 also the k of a slice (the sums are
// exact in int32, so any split gives the same bits). The sums then pass through shared memory once more, so
// that a thread has four neighbouring channels of a row for the epilogue.
//
// A slice's rows of kDepth bytes lie behind each other; 16-byte chunk c of row r is stored at chunk c ^
// twist(r), so that the eight rows that ldmatrix reads at once lie in different banks.
#pragma once

#include "kernels/cuda/aligned.h"
#include "kernels/cuda/async.cuh"
#include "kernels/cuda/in_order.cuh"
#include "kernels/cuda/int8.cuh"
#include "kernels/scaled_mm/op.h"
#include "kernels/scaled_mm/wide.cuh"

namespace oasr::kernels::cuda {

enum class MatrixUnit { mma, wgmma };

template <int M, int N, int WarpsM, int WarpsN, int WarpsK, int Depth, int Stages, int Blocks,
          MatrixUnit Unit = MatrixUnit::mma, bool Overlap = true>
struct Int8Tile {
  static constexpr int kM = M, kN = N, kWarpsM = WarpsM, kWarpsN = WarpsN, kWarpsK = WarpsK;
  static constexpr int kDepth = Depth, kStages = Stages;
  static constexpr int kBlocks = Blocks;  // of a multiprocessor
  static constexpr bool kWide = Unit == MatrixUnit::wgmma;
  static constexpr bool kOverlap = kWide && Overlap;
  static constexpr int kThreads = 32 * kWarpsM * kWarpsN * kWarpsK;
  static constexpr int kWarpM = kM / kWarpsM, kWarpN = kN / kWarpsN;
  static constexpr int kChunks = kDepth / 16;  // of a row of a slice
  static constexpr int kSlice = (kM + kN) * kDepth;
  // Sums in shared memory: a strip for each warp, or the whole tile for each part of k.
  static constexpr int kStripStride = kWarpN + 8, kSumStride = kN + 8;
  static constexpr int kStrips = kWarpsM * kWarpsN * kWarpM * kStripStride * 4;
  static constexpr int kSums = kWarpsK * kM * kSumStride * 4;
  static constexpr int kRing = kStages * kSlice;
  static constexpr int kEpilogue = kWarpsK == 1 ? kStrips : kSums;
  static constexpr int kShared = kRing > kEpilogue ? kRing : kEpilogue;
  static_assert(kWarpM % 16 == 0 && kWarpN % 16 == 0 && kDepth % (32 * kWarpsK) == 0 &&
                kThreads % kChunks == 0);
  static_assert(!kWide || (kWarpM == 16 && kWarpsM % 4 == 0 && kWarpsN == 1 && kDepth <= 128));
  static __device__ int twist(int row) { return kDepth == 64 ? row / 2 & 3 : row & 7; }
};

struct Int8Problem {
  // [m, k], rows lda apart, aligned to 16. They are read in whole chunks of 16: what is between k and the next
  // multiple of 16 must be there, and meets zeros of the weight.
  const std::int8_t* a;
  std::int64_t lda;
  ActivationScale a_scale;
  const std::int8_t* weight;  // [n, k], rows ldw apart, aligned to 16, zeros after k
  std::int64_t ldw;
  const float* w_scale;
  const float* bias;
  Activation activation;
  std::int64_t m, n, k;
  bool vectors;  // what belongs to four channels can be read and written at once
};

inline bool vectors(const FloatOutput& out) { return aligned(out.y, out.ldy) && aligned(out.residual, out.ldr); }
inline bool vectors(const Int8Output& out) { return aligned(out.q, out.ldq, 4) && aligned(out.multiplier, 0); }

template <class Output>
Int8Problem int8_problem(const ScaledMMArgs& args, const Output& out) {
  const PackedInt8Weight& weight = *args.weight;
  return {.a = args.a,
          .lda = args.lda,
          .a_scale = args.a_scale,
          .weight = weight.rows(),
          .ldw = weight.padded_k(),
          .w_scale = weight.scale(),
          .bias = args.bias,
          .activation = args.activation,
          .m = args.m,
          .n = weight.n(),
          .k = weight.k(),
          .vectors = aligned(args.bias, 0) && vectors(out)};
}

__device__ inline void load_matrices(unsigned (&to)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}
__device__ inline void multiply_add(int (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// What the epilogue multiplies and adds for the rows and channels of a tile, in shared memory, so that it
// waits for no memory; zeros where there are none.
template <class Tile>
struct Int8Factors {
  float a[Tile::kM], scale[Tile::kN], bias[Tile::kN], multiplier[Tile::kN];

  template <class Output>
  __device__ void load(const Int8Problem& p, const Output& out, std::int64_t first_m, std::int64_t first_n) {
    for (int i = threadIdx.x; i < Tile::kM; i += Tile::kThreads) {
      a[i] = first_m + i < p.m ? p.a_scale.of_row(first_m + i) : 0.0f;
    }
    for (int i = threadIdx.x; i < Tile::kN; i += Tile::kThreads) {
      const std::int64_t n = first_n + i;
      scale[i] = n < p.n ? p.w_scale[n] : 0.0f;
      bias[i] = n < p.n && p.bias != nullptr ? p.bias[n] : 0.0f;
      if constexpr (std::is_same_v<Output, Int8Output>) multiplier[i] = n < p.n ? out.multiplier[n] : 0.0f;
    }
  }
};

// The epilogue of epilogue.h for four neighbouring channels of several rows of a tile.
template <class Tile, class Output>
class Int8Epilogue {
  static constexpr bool kInt8 = std::is_same_v<Output, Int8Output>;

 public:
  // column: of the tile, a multiple of 4.
  __device__ Int8Epilogue(const Int8Problem& p, const Output& out, const Int8Factors<Tile>& factors,
                          std::int32_t* not_finite, std::int64_t first_m, std::int64_t first_n, int column)
      : p_(p),
        out_(out),
        factors_(factors),
        not_finite_(not_finite),
        first_m_(first_m),
        n_(first_n + column),
        scale_(*reinterpret_cast<const float4*>(factors.scale + column)),
        bias_(*reinterpret_cast<const float4*>(factors.bias + column)) {
    if constexpr (kInt8) multiplier_ = *reinterpret_cast<const float4*>(factors.multiplier + column);
  }

  // Rows `row`, row + step, … of the tile, those below the last row of the output.
  template <int kRows>
  __device__ void write(int row, int step, const int4 (&sums)[kRows]) const {
    if (n_ >= p_.n) return;
    float4 residual[kRows];
    if constexpr (!kInt8) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const std::int64_t m = first_m_ + row + r * step;
        if (out_.residual != nullptr && m < p_.m) residual[r] = four(out_.residual + m * out_.ldr + n_);
      }
    }
    float v[kRows * 4];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float a = factors_.a[row + r * step];
      v[4 * r] = value(a, scale_.x, sums[r].x);
      v[4 * r + 1] = value(a, scale_.y, sums[r].y);
      v[4 * r + 2] = value(a, scale_.z, sums[r].z);
      v[4 * r + 3] = value(a, scale_.w, sums[r].w);
      if (p_.bias == nullptr) continue;  // + 0 would change the sign of a zero
      v[4 * r] = __fadd_rn(v[4 * r], bias_.x);
      v[4 * r + 1] = __fadd_rn(v[4 * r + 1], bias_.y);
      v[4 * r + 2] = __fadd_rn(v[4 * r + 2], bias_.z);
      v[4 * r + 3] = __fadd_rn(v[4 * r + 3], bias_.w);
    }
    activate_all(p_.activation, v);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const std::int64_t m = first_m_ + row + r * step;
      if (m >= p_.m) continue;
      if constexpr (kInt8) {
        store_int8(m, v + 4 * r);
      } else {
        store(m, v + 4 * r, residual[r]);
      }
    }
  }

 private:
  __device__ static float value(float a, float scale, int sum) {
    return __fmul_rn(a, __fmul_rn(scale, __int2float_rn(sum)));
  }
  __device__ bool whole() const { return p_.vectors && n_ + 4 <= p_.n; }
  __device__ float4 four(const float* from) const {
    if (whole()) return *reinterpret_cast<const float4*>(from);
    return {from[0], n_ + 1 < p_.n ? from[1] : 0.0f, n_ + 2 < p_.n ? from[2] : 0.0f,
            n_ + 3 < p_.n ? from[3] : 0.0f};
  }

  __device__ void store(std::int64_t m, float* v, float4 residual) const {
    if (out_.residual != nullptr) {
      v[0] = __fmaf_rn(out_.alpha, v[0], residual.x);
      v[1] = __fmaf_rn(out_.alpha, v[1], residual.y);
      v[2] = __fmaf_rn(out_.alpha, v[2], residual.z);
      v[3] = __fmaf_rn(out_.alpha, v[3], residual.w);
    }
    float* y = out_.y + m * out_.ldy + n_;
    if (whole()) {
      *reinterpret_cast<float4*>(y) = {v[0], v[1], v[2], v[3]};
      return;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (n_ + i < p_.n) y[i] = v[i];
    }
  }

  __device__ void store_int8(std::int64_t m, float* v) const {
    const float factors[4] = {multiplier_.x, multiplier_.y, multiplier_.z, multiplier_.w};
    bool finite = true;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const bool number = is_finite(v[i]) || n_ + i >= p_.n;
      finite = finite && number;
      v[i] = number ? clamp_to_int8(__fmul_rn(v[i], factors[i])) : 0.0f;
    }
    if (!finite) report_row(not_finite_, m);
    const unsigned q = round_four(v[0], v[1], v[2], v[3]);
    std::int8_t* to = out_.q + m * out_.ldq + n_;
    if (whole()) {
      *reinterpret_cast<unsigned*>(to) = q;
      return;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (n_ + i < p_.n) to[i] = static_cast<std::int8_t>(q >> (8 * i) & 0xff);
    }
  }

  const Int8Problem& p_;
  const Output& out_;
  const Int8Factors<Tile>& factors_;
  std::int32_t* not_finite_;
  const std::int64_t first_m_, n_;
  const float4 scale_, bias_;
  float4 multiplier_{};
};

template <class Tile, class Output>
class Int8Product {
  static constexpr int kTilesM = Tile::kWarpM / 16, kTilesN = Tile::kWarpN / 8;  // of mma
  static constexpr int kSteps = Tile::kDepth / 32 / Tile::kWarpsK;               // of mma in a slice

 public:
  __device__ Int8Product(const Int8Problem& p, std::int64_t first_m, std::int64_t first_n, std::byte* shared,
                         Int8Factors<Tile>& factors)
      : p_(p),
        first_m_(first_m),
        first_n_(first_n),
        shared_(shared),
        factors_(factors),
        ring_(shared_address(shared)),
        lane_(threadIdx.x % 32),
        warp_(threadIdx.x / 32) {
    const int in_k = warp_ / (Tile::kWarpsM * Tile::kWarpsN),
              in_tile = warp_ % (Tile::kWarpsM * Tile::kWarpsN);
    part_ = in_k;
    warp_m_ = in_tile % Tile::kWarpsM * Tile::kWarpM;
    warp_n_ = in_tile / Tile::kWarpsM * Tile::kWarpN;
  }

  // Asks for the first slices of W.
  __device__ void begin() {
    prepare_loads();
#pragma unroll
    for (int s = 0; s < kAhead; ++s) {
      if (s < slices()) load_w(s, s);
    }
  }

  // After begin().
  __device__ void run(const Output& out, std::int32_t* not_finite) {
#pragma unroll
    for (int s = 0; s < kAhead; ++s) {
      if (s < slices()) load_a(s, s);
      copy_async_commit();
    }
    if constexpr (!Tile::kWide) factors_.load(p_, out, first_m_, first_n_);  // beside the slices
    const int slices = this->slices();
    int read = 0, written = kAhead;  // buffers of the ring
    for (int s = 0; s < slices; ++s) {
      copy_async_wait<kAhead - 1>();
      if constexpr (Tile::kWide) wide_fence_copies();
      __syncthreads();  // the slice is there for all, and the buffer that is written next is not read any
                        // more
      if (s + kAhead < slices) {
        load_a(s + kAhead, written);
        load_w(s + kAhead, written);
      }
      copy_async_commit();
      multiply(ring_ + read * Tile::kSlice);
      if (++read == Tile::kStages) read = 0;
      if (++written == Tile::kStages) written = 0;
    }
    if constexpr (Tile::kWide) {
      factors_.load(p_, out, first_m_, first_n_);
      wide_wait<0>();
    }
    copy_async_wait<0>();
    __syncthreads();
    if constexpr (Tile::kWarpsK == 1) {
      write_strips(out, not_finite);
    } else {
      write_parts(out, not_finite);
    }
  }

 private:
  // Slices that are asked for before the first is used. A wgmma reads its slice while the next barrier is passed: one
  // buffer more is not free.
  static constexpr int kAhead = Tile::kStages - (Tile::kOverlap ? 2 : 1);
  static constexpr int kRowsAtOnce = Tile::kThreads / Tile::kChunks;
  static constexpr int kLoadsA = (Tile::kM + kRowsAtOnce - 1) / kRowsAtOnce;
  static constexpr int kLoadsW = (Tile::kN + kRowsAtOnce - 1) / kRowsAtOnce;

  // In registers: the compiler would rather compute it again for every slice.
  __device__ static void keep(const std::int8_t*& address) { asm volatile("" : "+l"(address)); }

  // Rows after the last are not read (all blocks would read the last one, many times), channels after the
  // last are read as the last: what they give is not written.
  __device__ void prepare_loads() {
    const int row = threadIdx.x / Tile::kChunks, chunk = threadIdx.x % Tile::kChunks;
    load_k_ = chunk * 16;
#pragma unroll
    for (int i = 0; i < kLoadsA; ++i) {
      const std::int64_t m = first_m_ + row + i * kRowsAtOnce;
      present_ |= static_cast<unsigned>(m < p_.m) << i;
      from_a_[i] = p_.a + (m < p_.m ? m : p_.m - 1) * p_.lda + load_k_;
      keep(from_a_[i]);
    }
#pragma unroll
    for (int i = 0; i < kLoadsW; ++i) {
      const std::int64_t n = first_n_ + row + i * kRowsAtOnce;
      from_w_[i] = p_.weight + (n < p_.n ? n : p_.n - 1) * p_.ldw + load_k_;
      keep(from_w_[i]);
    }
    static_assert(kRowsAtOnce % 8 == 0, "a thread's rows have one twist");
    to_ = row * Tile::kDepth + (chunk ^ Tile::twist(row)) * 16;
  }

  __device__ int slices() const { return static_cast<int>((p_.k + Tile::kDepth - 1) / Tile::kDepth); }

  // Slice s of rows of A or W into a buffer, whose rows there begin at kFirst; chunks after the last become zeros, as
  // rows that are not present.
  template <int kFirst, int kRows, int kLoads>
  __device__ void load(int s, int buffer, const std::int8_t* const (&from)[kLoads], unsigned present) const {
    const int row = threadIdx.x / Tile::kChunks;
    const std::int64_t k = std::int64_t{s} * Tile::kDepth;
    const bool there = k + load_k_ < p_.k;
    const std::int64_t step = there ? k : -load_k_;  // an address that exists
    const unsigned to = ring_ + buffer * Tile::kSlice + kFirst * Tile::kDepth + to_;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (kRows % kRowsAtOnce != 0 && row + i * kRowsAtOnce >= kRows) break;
      copy_async_16_if(to + i * kRowsAtOnce * Tile::kDepth, from[i] + step, there && (present >> i & 1) != 0);
    }
  }
  __device__ void load_a(int s, int buffer) const { load<0, Tile::kM>(s, buffer, from_a_, present_); }
  __device__ void load_w(int s, int buffer) const { load<Tile::kM, Tile::kN>(s, buffer, from_w_, ~0u); }

  // Adds the products of one slice.
  __device__ void multiply(unsigned slice) {
    if constexpr (Tile::kWide) {
      const std::uint64_t a = wide_operand<Tile::kDepth>(slice + warp_m_ / 64 * 64 * Tile::kDepth);
      const std::uint64_t w = wide_operand<Tile::kDepth>(slice + Tile::kM * Tile::kDepth);
      wide_begin();
#pragma unroll
      for (int step = 0; step < kSteps; ++step) multiply_wide<Tile::kN>(sums_[0], a + step * 2, w + step * 2);
      wide_commit();
      wide_wait<Tile::kOverlap ? 1 : 0>();
    } else {
      multiply_narrow(slice);
    }
  }

  __device__ void multiply_narrow(unsigned slice) {
    const int row_a = lane_ & 15, half_a = lane_ >> 4;
    const int row_w = (lane_ >> 4) * 8 + (lane_ & 7), half_w = lane_ >> 3 & 1;
    const unsigned at_a = slice + (warp_m_ + row_a) * Tile::kDepth;
    const unsigned at_w = slice + (Tile::kM + warp_n_ + row_w) * Tile::kDepth;
    const int twist_a = Tile::twist(row_a), twist_w = Tile::twist(row_w);
    unsigned a[2][kTilesM][4], w[2][kTilesN / 2][4];
    const auto fetch = [&](int step) {
      const int chunk = (step * Tile::kWarpsK + part_) * 2;
#pragma unroll
      for (int i = 0; i < kTilesM; ++i) {
        load_matrices(a[step & 1][i], at_a + i * 16 * Tile::kDepth + ((chunk + half_a) ^ twist_a) * 16);
      }
#pragma unroll
      for (int j = 0; j < kTilesN / 2; ++j) {
        load_matrices(w[step & 1][j], at_w + j * 16 * Tile::kDepth + ((chunk + half_w) ^ twist_w) * 16);
      }
    };
    fetch(0);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (step + 1 < kSteps) fetch(step + 1);
#pragma unroll
      for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
        for (int j = 0; j < kTilesN; ++j) {
          multiply_add(sums_[i][j], a[step & 1][i], w[step & 1][j / 2][j % 2 * 2],
                       w[step & 1][j / 2][j % 2 * 2 + 1]);
        }
      }
    }
  }

  // Sums of 16 rows of the warp's tile, `to` being where its first row and channel go.
  __device__ void store_sums(int i, int* to, int stride) const {
    const int row = lane_ / 4, column = lane_ % 4 * 2;
#pragma unroll
    for (int j = 0; j < kTilesN; ++j) {
      *reinterpret_cast<int2*>(to + row * stride + j * 8 + column) = {sums_[i][j][0], sums_[i][j][1]};
      *reinterpret_cast<int2*>(to + (row + 8) * stride + j * 8 + column) = {sums_[i][j][2], sums_[i][j][3]};
    }
  }

  // Each warp its own tile.
  __device__ void write_strips(const Output& out, std::int32_t* not_finite) {
    // Of four channels; a thread has one of them at a time.
    constexpr int kGroups = Tile::kWarpN / 4 < 32 ? Tile::kWarpN / 4 : 32;
    constexpr int kStep = 32 / kGroups, kBatch = 4;
    static_assert(32 % kGroups == 0 && Tile::kWarpM % (kStep * kBatch) == 0);
    int* strip = reinterpret_cast<int*>(shared_) + warp_ * Tile::kWarpM * Tile::kStripStride;
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) store_sums(i, strip + i * 16 * Tile::kStripStride, Tile::kStripStride);
    __syncwarp();
#pragma unroll 1
    for (int column = lane_ % kGroups * 4; column < Tile::kWarpN; column += kGroups * 4) {
      const Int8Epilogue<Tile, Output> epilogue(p_, out, factors_, not_finite, first_m_, first_n_,
                                                warp_n_ + column);
#pragma unroll 1
      for (int row = lane_ / kGroups; row < Tile::kWarpM; row += kStep * kBatch) {
        int4 sums[kBatch];
#pragma unroll
        for (int j = 0; j < kBatch; ++j) {
          sums[j] = *reinterpret_cast<const int4*>(strip + (row + j * kStep) * Tile::kStripStride + column);
        }
        epilogue.write(warp_m_ + row, kStep, sums);
      }
    }
  }

  // The warps' parts of k are added by whoever writes.
  __device__ void write_parts(const Output& out, std::int32_t* not_finite) {
    constexpr int kGroups = Tile::kN / 4, kPart = Tile::kM * Tile::kSumStride;
    static_assert(Tile::kThreads % kGroups == 0);
    int* all = reinterpret_cast<int*>(shared_);
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) {
      store_sums(i, all + part_ * kPart + (warp_m_ + i * 16) * Tile::kSumStride + warp_n_, Tile::kSumStride);
    }
    __syncthreads();
    const int column = threadIdx.x % kGroups * 4;
    const Int8Epilogue<Tile, Output> epilogue(p_, out, factors_, not_finite, first_m_, first_n_, column);
#pragma unroll 1
    for (int row = threadIdx.x / kGroups; row < Tile::kM; row += Tile::kThreads / kGroups) {
      int4 sums[1]{};
#pragma unroll
      for (int part = 0; part < Tile::kWarpsK; ++part) {
        const int4 s = *reinterpret_cast<const int4*>(all + part * kPart + row * Tile::kSumStride + column);
        sums[0] = {sums[0].x + s.x, sums[0].y + s.y, sums[0].z + s.z, sums[0].w + s.w};
      }
      epilogue.write(row, 0, sums);
    }
  }

  const Int8Problem& p_;
  const std::int64_t first_m_, first_n_;
  std::byte* shared_;
  Int8Factors<Tile>& factors_;
  const unsigned ring_;
  const int lane_, warp_;
  int part_, warp_m_, warp_n_, load_k_;
  unsigned to_, present_ = 0;
  const std::int8_t* from_a_[kLoadsA];
  const std::int8_t* from_w_[kLoadsW];
  int sums_[kTilesM][kTilesN][4] = {};
};

// Blocks are numbered so that those which run at the same time share rows of A and W: down kGroup tiles, then
// across.
template <class Tile, class Output>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    int8_product(const __grid_constant__ Int8Problem p, const __grid_constant__ Output out, unsigned tiles_m,
                 unsigned tiles_n, std::int32_t* not_finite) {
  extern __shared__ __align__(1024) std::byte shared[];
  __shared__ Int8Factors<Tile> factors;
  constexpr unsigned kGroup = 8;
  const unsigned group = blockIdx.x / (kGroup * tiles_n), first = group * kGroup;
  const unsigned rows = tiles_m - first < kGroup ? tiles_m - first : kGroup;
  const unsigned in_group = blockIdx.x - group * kGroup * tiles_n;
  Int8Product<Tile, Output> product(p, std::int64_t{first + in_group % rows} * Tile::kM,
                                    std::int64_t{in_group / rows} * Tile::kN, shared, factors);
  cuda::in_order([&] { product.begin(); });
  product.run(out, not_finite);
}

}  // namespace oasr::kernels::cuda
