// The lines of a journal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "oasr/eval.h"

namespace oasr::eval {

struct JournalText {
  Json configuration;
  std::vector<EvalJournal::Entry> entries;  // of an utterance that is there twice the last
  std::size_t whole = 0;                    // bytes up to the end of the last whole line
};

// A line that was not written to its end is left out. Errors: invalid_argument for a file that is
// no journal, or has a bad line before its end.
Result<JournalText> parse_journal(std::string_view text, const std::string& path);

// "decode.beam_size: 1 there, 5 now", for all keys that differ, "" if none does.
std::string differences(const Json& there, const Json& now);

}  // namespace oasr::eval
