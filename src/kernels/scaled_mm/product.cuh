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

#include "kernels/cuda/async.cuh"
#include "kernels/cuda/in_order.cuh"
#include "kernels/scaled_mm/epilogue.cuh"
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

template <class Tile, class Output>
class Int8Product {
  static constexpr int kTilesM = Tile::kWarpM / 16, kTilesN = Tile::kWarpN / 8;  // of mma
  static constexpr int kSteps = Tile::kDepth / 32 / Tile::kWarpsK;               // of mma in a slice
  static_assert(Tile::kWide || kSteps % 2 == 0, "operands of a slice's first step are always the first");
  // The operands of a warp's products of one step.
  struct Operands {
    unsigned a[kTilesM][4], w[kTilesN / 2][4];
  };

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
    if constexpr (Tile::kWide) {
      multiply_slices_wide();
    } else {
      multiply_slices();
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

  // The next slice is there for all then, and the buffer that is written next is not read any more.
  __device__ static void next_slice() {
    copy_async_wait<kAhead - 1>();
    if constexpr (Tile::kWide) wide_fence_copies();
    __syncthreads();
  }
  __device__ void load(int s, int buffer) const {
    if (s < slices()) {
      load_a(s, buffer);
      load_w(s, buffer);
    }
    copy_async_commit();
  }
  __device__ static int after(int buffer) { return buffer + 1 == Tile::kStages ? 0 : buffer + 1; }

  __device__ void multiply_slices_wide() {
    const int slices = this->slices();
    int read = 0, written = kAhead;  // buffers of the ring
    for (int s = 0; s < slices; ++s) {
      next_slice();
      load(s + kAhead, written);
      multiply_wide_slice(ring_ + read * Tile::kSlice);
      read = after(read);
      written = after(written);
    }
  }

  __device__ void multiply_wide_slice(unsigned slice) {
    const std::uint64_t a = wide_operand<Tile::kDepth>(slice + warp_m_ / 64 * 64 * Tile::kDepth);
    const std::uint64_t w = wide_operand<Tile::kDepth>(slice + Tile::kM * Tile::kDepth);
    wide_begin();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) multiply_wide<Tile::kN>(sums_[0], a + step * 2, w + step * 2);
    wide_commit();
    wide_wait<Tile::kOverlap ? 1 : 0>();
  }

  // The first operands of a slice are fetched before the last products of the slice before it.
  __device__ void multiply_slices() {
    const int slices = this->slices();
    int read = 0, written = kAhead;
    Operands operands[2];
    next_slice();
    fetch(operands[0], ring_, 0);
    for (int s = 0; s < slices; ++s) {
      load(s + kAhead, written);
      const unsigned slice = ring_ + read * Tile::kSlice;
      read = after(read);
      written = after(written);
#pragma unroll
      for (int step = 0; step + 1 < kSteps; ++step) {
        fetch(operands[(step + 1) & 1], slice, step + 1);
        multiply(operands[step & 1]);
      }
      next_slice();
      if (s + 1 < slices) fetch(operands[0], ring_ + read * Tile::kSlice, 0);
      multiply(operands[1]);
    }
  }

  __device__ void fetch(Operands& to, unsigned slice, int step) const {
    const int row_a = lane_ & 15, half_a = lane_ >> 4;
    const int row_w = (lane_ >> 4) * 8 + (lane_ & 7), half_w = lane_ >> 3 & 1;
    const unsigned at_a = slice + (warp_m_ + row_a) * Tile::kDepth;
    const unsigned at_w = slice + (Tile::kM + warp_n_ + row_w) * Tile::kDepth;
    const int twist_a = Tile::twist(row_a), twist_w = Tile::twist(row_w);
    const int chunk = (step * Tile::kWarpsK + part_) * 2;
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) {
      load_matrices(to.a[i], at_a + i * 16 * Tile::kDepth + ((chunk + half_a) ^ twist_a) * 16);
    }
#pragma unroll
    for (int j = 0; j < kTilesN / 2; ++j) {
      load_matrices(to.w[j], at_w + j * 16 * Tile::kDepth + ((chunk + half_w) ^ twist_w) * 16);
    }
  }

  __device__ void multiply(const Operands& operands) {
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) {
        multiply_add(sums_[i][j], operands.a[i], operands.w[j / 2][j % 2 * 2], operands.w[j / 2][j % 2 * 2 + 1]);
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
