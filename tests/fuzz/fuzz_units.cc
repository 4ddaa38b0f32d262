// Fuzzes symbol tables, and SentencePiece models when the input begins with 's'.
#include <cstdlib>

#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  oasr::TokenizerSource source;
  source.origin = "fuzz";
  if (input.front() == 's') {
    source.kind = "sentencepiece";
    source.sentencepiece_model = input.substr(1);
  } else {
    source.kind = "units";
    source.units_txt = input.substr(1);
  }
  const auto tokenizer = oasr::make_tokenizer(source);
  if (!tokenizer) return 0;
  // Whatever it holds, it encodes any text to ids that it knows or to none, and decodes any id.
  const auto ids = (*tokenizer)->encode("It's ab abba, \xE4\xBD\xA0\xE5\xA5\xBD\n \xC3\xA9\xFF.");
  for (const oasr::TokenId id : ids) {
    if (id < -1 || id >= (*tokenizer)->size()) std::abort();
  }
  (*tokenizer)->decode(ids);
  for (const oasr::TokenId id : {-1, 0, 1, 255, 256, 1 << 30}) (*tokenizer)->token_bytes(id);
  return 0;
}
