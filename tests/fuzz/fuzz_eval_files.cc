// Fuzzes the files that `oasr eval` reads. The first byte says which: k, t, r and j texts in
// Kaldi's form, tab-separated, trn and JSON Lines; m a manifest, p a partial result, e a result;
// everything else texts of a form that is found out.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "eval/journal.h"
#include "eval/manifest.h"
#include "eval/score_files.h"
#include "oasr/eval.h"

namespace {

void read_texts(std::string_view text, const char* name) {
  const auto format = oasr::eval::find_text_format(name, "fuzz", text);
  if (!format) std::abort();
  const auto rows =
      oasr::eval::parse_text_file(text, "fuzz", *format, oasr::eval::TextSide::reference);
  if (rows && rows->empty()) std::abort();
  if (!rows && rows.error().what.empty()) std::abort();
}

void read_manifest(std::string_view text) {
  oasr::EvalInputs inputs;
  if (!oasr::eval::parse_manifest(text, "fuzz", {.empty = oasr::eval::EmptyReference::score, .audio_root = {}}, inputs)) return;
  if (inputs.rows.empty()) std::abort();
  for (const auto& row : inputs.rows) {
    if (row.utterance.audio.empty() || row.utterance.id.empty()) std::abort();
  }
}

// What is read whole is written and read again.
void read_report(std::string_view text) {
  const auto report = oasr::parse_eval_report(std::string(text), "fuzz");
  if (report && !oasr::parse_eval_report(oasr::eval_json(*report), "fuzz")) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.empty()) return 0;
  const char kind = input[0];
  input.remove_prefix(1);
  switch (kind) {
    case 'k':
      read_texts(input, "kaldi");
      break;
    case 't':
      read_texts(input, "tsv");
      break;
    case 'r':
      read_texts(input, "trn");
      break;
    case 'j':
      read_texts(input, "jsonl");
      break;
    case 'm':
      read_manifest(input);
      break;
    case 'p':
      (void)oasr::eval::parse_journal(input, "fuzz");
      break;
    case 'e':
      read_report(input);
      break;
    default:
      read_texts(input, "auto");
  }
  return 0;
}
