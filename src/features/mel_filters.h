// Slaney's triangular mel filters over the bins of Whisper's 400-point transform.
#pragma once

#include <vector>

namespace oasr {

// One triangle: weights of the bins [first_bin, first_bin + weights.size()); zero elsewhere.
struct MelFilter {
  int first_bin = 0;
  std::vector<float> weights;

  bool operator==(const MelFilter&) const = default;
};

// `n_mels` filters from 0 to 8000 Hz, equally spaced on Slaney's mel scale (linear below 1 kHz,
// logarithmic above), each scaled to unit area in Hz, for the 201 bins of 40 Hz. The rounding is
// that of librosa.filters.mel, from which Whisper's own table was made.
std::vector<MelFilter> slaney_mel_filters(int n_mels);

}  // namespace oasr
