#include <algorithm>
#include <memory>

#include "kernels/ctc_beam/search.h"

namespace oasr::kernels {
namespace {

using ctc_beam::NodeKey;

// One thread in the place of a team.
struct Alone {
  bool backwards = false;

  template <class F>
  void each(int n, const F& f) const {
    for (int i = 0; i < n; ++i) f(backwards ? n - 1 - i : i);
  }
  template <class F, class G>
  void both(int n, const F& f, int m, const G& g) const {
    if (backwards) each(m, g);
    each(n, f);
    if (!backwards) each(m, g);
  }
  static NodeKey claim(NodeKey* at, NodeKey key) {
    const NodeKey found = *at;
    if (found == 0) *at = key;
    return found;
  }
};

}  // namespace

void ctc_prefix_beam_reference(const CtcBeamArgs& args, bool backwards) {
  std::fill_n(args.memory.nodes, 2 * args.second_beam * args.rows, NodeKey{0});
  const auto board = std::make_unique<ctc_beam::Board>();
  const Alone team{backwards};
  for (std::size_t i = 0; i < args.utterances.size(); ++i) {
    const auto utterance = ctc_beam::utterance_of(args, args.utterances[i], static_cast<std::int64_t>(i));
    ctc_beam::Search(team, utterance, *board).run();
  }
}

}  // namespace oasr::kernels
