// What one core can do with int8 in registers, and read from memory: the roofs of the int8 kernels.
#pragma once

#include <cstddef>

namespace oasr::bench {

// Each runs a register-only loop with enough independent chains; returns the operations (two for
// each multiply-add).
double int8_peak_avx2(long rounds);             // s16 pairs: vpmaddwd + vpaddd
double int8_peak_avx2_sign_split(long rounds);  // vpsignb + vpmaddubsw + vpmaddwd + vpaddd
double int8_peak_avx_vnni(long rounds);         // vpdpbusd, 256 bits
double int8_peak_avx512_vnni(long rounds);      // vpdpbusd, 512 bits
double int8_peak_amx(long rounds);              // tdpbssd

// Reads the bytes once, in rising order, with the widest loads that `avx512` allows.
void read_all_avx2(const std::byte* data, std::size_t bytes);
void read_all_avx512(const std::byte* data, std::size_t bytes);

}  // namespace oasr::bench
