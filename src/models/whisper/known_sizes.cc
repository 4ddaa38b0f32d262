#include "models/whisper/known_sizes.h"

namespace oasr::models::whisper {
namespace {

// Published with openai-whisper (MIT licence).
constexpr AlignmentHead kTinyEn[] = {{1, 0}, {2, 0}, {2, 5}, {3, 0}, {3, 1}, {3, 2}, {3, 3},
    {3, 4}};
constexpr AlignmentHead kTiny[] = {{2, 2}, {3, 0}, {3, 2}, {3, 3}, {3, 4}, {3, 5}};
constexpr AlignmentHead kBaseEn[] = {{3, 3}, {4, 7}, {5, 1}, {5, 5}, {5, 7}};
constexpr AlignmentHead kBase[] = {{3, 1}, {4, 2}, {4, 3}, {4, 7}, {5, 1}, {5, 2}, {5, 4}, {5, 6}};
constexpr AlignmentHead kSmallEn[] = {{6, 6}, {7, 0}, {7, 3}, {7, 8}, {8, 2}, {8, 5}, {8, 7},
    {9, 0}, {9, 4}, {9, 8}, {9, 10}, {10, 0}, {10, 1}, {10, 2}, {10, 3}, {10, 6}, {10, 11}, {11, 2},
    {11, 4}};
constexpr AlignmentHead kSmall[] = {{5, 3}, {5, 9}, {8, 0}, {8, 4}, {8, 7}, {8, 8}, {9, 0}, {9, 7},
    {9, 9}, {10, 5}};
constexpr AlignmentHead kMediumEn[] = {{11, 4}, {14, 1}, {14, 12}, {14, 14}, {15, 4}, {16, 0},
    {16, 4}, {16, 9}, {17, 12}, {17, 14}, {18, 7}, {18, 10}, {18, 15}, {20, 0}, {20, 3}, {20, 9},
    {20, 14}, {21, 12}};
constexpr AlignmentHead kMedium[] = {{13, 15}, {15, 4}, {15, 15}, {16, 1}, {20, 0}, {23, 4}};
constexpr AlignmentHead kLargeV2[] = {{10, 12}, {13, 17}, {16, 11}, {16, 12}, {16, 13}, {17, 15},
    {17, 16}, {18, 4}, {18, 11}, {18, 19}, {19, 11}, {21, 2}, {21, 3}, {22, 3}, {22, 9}, {22, 12},
    {23, 5}, {23, 7}, {23, 13}, {25, 5}, {26, 1}, {26, 12}, {27, 15}};
constexpr AlignmentHead kLargeV3[] = {{7, 0}, {10, 17}, {12, 18}, {13, 12}, {16, 1}, {17, 14},
    {19, 11}, {21, 4}, {24, 1}, {25, 6}};
constexpr AlignmentHead kTurbo[] = {{2, 4}, {2, 11}, {3, 3}, {3, 6}, {3, 11}, {3, 14}};

constexpr KnownSize kSizes[] = {
    {"tiny.en", 384, 4, 4, 80, false, kTinyEn},
    {"tiny", 384, 4, 4, 80, true, kTiny},
    {"base.en", 512, 6, 6, 80, false, kBaseEn},
    {"base", 512, 6, 6, 80, true, kBase},
    {"small.en", 768, 12, 12, 80, false, kSmallEn},
    {"small", 768, 12, 12, 80, true, kSmall},
    {"medium.en", 1024, 24, 24, 80, false, kMediumEn},
    {"medium", 1024, 24, 24, 80, true, kMedium},
    {"large", 1280, 32, 32, 80, true, kLargeV2},
    {"large-v3", 1280, 32, 32, 128, true, kLargeV3},
    {"large-v3-turbo", 1280, 32, 4, 128, true, kTurbo},
};

}  // namespace

const KnownSize* known_size(const Config& config, bool multilingual) {
  for (const KnownSize& size : kSizes) {
    if (size.d_model == config.d_model && size.encoder_layers == config.encoder_layers &&
        size.decoder_layers == config.decoder_layers && size.num_mel_bins == config.num_mel_bins &&
        size.multilingual == multilingual) {
      return &size;
    }
  }
  return nullptr;
}

std::vector<AlignmentHead> default_alignment_heads(const Config& config, bool multilingual) {
  if (const KnownSize* size = known_size(config, multilingual)) {
    return {size->alignment_heads.begin(), size->alignment_heads.end()};
  }
  std::vector<AlignmentHead> heads;
  for (int layer = config.decoder_layers / 2; layer < config.decoder_layers; ++layer) {
    for (int head = 0; head < config.decoder_attention_heads; ++head) heads.emplace_back(layer, head);
  }
  return heads;
}

}  // namespace oasr::models::whisper
