// Fuzzes tokenizer.json, and vocab.json + merges.txt when the input begins with 'v'.
#include <cstdlib>

#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  oasr::TokenizerSource source;
  source.kind = "tokenizer_json";
  source.origin = "fuzz";
  source.tokenizer_json = input;
  if (input.starts_with('v')) {  // "v", vocab.json, a zero byte, merges.txt
    source.kind = "vocab_merges";
    input.remove_prefix(1);
    source.vocab_json = input.substr(0, input.find('\0'));
    input.remove_prefix(std::min(source.vocab_json.size() + 1, input.size()));
    source.merges_txt = input;
  }
  const auto tokenizer = oasr::make_tokenizer(source);
  if (!tokenizer) return 0;
  // Whatever it holds, it encodes any text to ids that it knows, and decodes any id.
  const auto ids = (*tokenizer)->encode("It's a test of 12 tokens,\n  \xC3\xA9\xFF or so.");
  for (const oasr::TokenId id : ids) {
    if (id < 0 || id >= (*tokenizer)->size()) std::abort();
  }
  (*tokenizer)->decode(ids);
  for (const oasr::TokenId id : {-1, 0, 1, 255, 256, 1 << 30}) (*tokenizer)->token_bytes(id);
  return 0;
}
