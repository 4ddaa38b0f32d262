#include "kernels/peak/lanes.h"
#include "kernels/scaled_mm/tiles_amx.h"

namespace oasr::kernels {

double int8_peak_amx(long rounds) {
  using amx::Tiles;
  const Tiles hold;
  Tiles::zero<4>();
  Tiles::zero<5>();
  Tiles::zero<6>();
  Tiles::zero<7>();
  for (long i = 0; i < rounds; ++i) {
    Tiles::multiply<0, 4, 6>();
    Tiles::multiply<1, 4, 7>();
    Tiles::multiply<2, 5, 6>();
    Tiles::multiply<3, 5, 7>();
  }
  return 2.0 * 16 * 16 * 64 * 4 * static_cast<double>(rounds);
}

}  // namespace oasr::kernels
