// What one core reads from memory, and a way to multiply int8 that no lane uses.
#pragma once

#include <cstddef>

namespace oasr::bench {

// Reads the bytes once, in rising order, with the widest loads of the instruction set.
void read_all_avx2(const std::byte* data, std::size_t bytes);
void read_all_avx512(const std::byte* data, std::size_t bytes);

// vpsignb, vpmaddubsw, vpmaddwd, vpaddd in registers: returns the operations.
double int8_peak_avx2_sign_split(long rounds);

}  // namespace oasr::bench
