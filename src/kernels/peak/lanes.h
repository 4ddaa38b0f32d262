// The lanes' entry points: for the tables in lanes_*.cc only.
#pragma once

namespace oasr::kernels {

// One file and one set of compiler flags for each instruction set.
double int8_peak_scalar(long rounds);
double int8_peak_avx2(long rounds);         // s16 pairs: vpmaddwd, vpaddd
double int8_peak_avx_vnni(long rounds);     // vpdpbusd, 256 bits
double int8_peak_avx512_vnni(long rounds);  // vpdpbusd, 512 bits
double int8_peak_amx(long rounds);          // tdpbssd

double float32_peak_scalar(long rounds);
double float32_peak_avx2(long rounds);
double float32_peak_avx512(long rounds);

}  // namespace oasr::kernels
