#include "base/check.h"
#include "decode/log_math.h"
#include "kernels/ctc_beam/op.h"

namespace oasr::kernels {
namespace {

constexpr std::int64_t kResultFloats = sizeof(CtcBeamResult) / sizeof(float);
constexpr std::int64_t kTokenFloats = sizeof(CtcBeamToken) / sizeof(float);
static_assert(kResultFloats == 4 && kTokenFloats == 3);
// Of a row and a hypothesis: two nodes, a height and the emission before.
constexpr std::int64_t kSearchFloats = 2 * 2 + 1 + 1;

}  // namespace

std::int64_t CtcBeamMemory::read_floats(std::int64_t rows, std::int64_t utterances, int beam) {
  return beam * (utterances * kResultFloats + rows * kTokenFloats);
}

std::int64_t CtcBeamMemory::floats(std::int64_t rows, std::int64_t utterances, int beam) {
  return beam * rows * kSearchFloats + read_floats(rows, utterances, beam);
}

CtcBeamMemory CtcBeamMemory::read_at(float* memory, std::int64_t utterances, int beam) {
  CtcBeamMemory made;
  made.results = reinterpret_cast<CtcBeamResult*>(memory);
  made.tokens = reinterpret_cast<CtcBeamToken*>(memory + beam * utterances * kResultFloats);
  return made;
}

CtcBeamMemory::CtcBeamMemory(float* memory, std::int64_t rows, std::int64_t utterances, int beam) {
  const std::int64_t each = beam * rows;
  *this = read_at(memory + each * kSearchFloats, utterances, beam);
  nodes = reinterpret_cast<unsigned long long*>(memory);
  heights = memory + 4 * each;
  befores = reinterpret_cast<std::int32_t*>(heights + each);
}

std::vector<decode::CtcHypothesis> ctc_hypotheses(const CtcBeamMemory& memory, int beam, std::int64_t index,
                                                  const CtcBeamUtterance& utterance) {
  std::vector<decode::CtcHypothesis> all;
  for (int i = 0; i < beam; ++i) {
    const CtcBeamResult& result = memory.results[index * beam + i];
    if (result.length < 0) break;
    decode::CtcHypothesis& made = all.emplace_back();
    made.score = made.ctc_score = result.score;
    const CtcBeamToken* tokens =
        memory.tokens + std::int64_t{beam} * utterance.first_row + std::int64_t{i} * utterance.frames;
    for (std::int32_t k = 0; k < result.length; ++k) {
      CHECK(tokens[k].frame >= 0, "every token of a possible hypothesis was emitted");
      made.tokens.push_back(
          {tokens[k].token, tokens[k].frame, decode::exp_of_negative(double{tokens[k].log_probability})});
    }
  }
  return all;
}

}  // namespace oasr::kernels
