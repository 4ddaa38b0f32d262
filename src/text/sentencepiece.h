// SentencePiece models (Kudo and Richardson 2018), read by libsentencepiece. Internal to text.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace oasr {

class SentencePieces {
 public:
  enum class Kind { text, unknown, control, unused, byte };

  // From the bytes of a .model file. Errors (bad_checkpoint): what the library refuses, and a
  // normaliser whose table points outside itself, which the library would follow.
  static Result<std::shared_ptr<const SentencePieces>> load(std::string_view model,
                                                            const std::string& origin);
  ~SentencePieces();
  SentencePieces(const SentencePieces&) = delete;
  SentencePieces& operator=(const SentencePieces&) = delete;

  // The pieces of a text, as they are spelt ("▁HE", "LLO"); what no piece covers comes as its own
  // characters. Thread-safe.
  std::vector<std::string> pieces(std::string_view text) const;
  std::vector<int> ids(std::string_view text) const;

  int size() const;
  const std::string& piece(int id) const;
  Kind kind(int id) const;

 private:
  explicit SentencePieces(std::unique_ptr<sentencepiece::SentencePieceProcessor> processor);
  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
};

}  // namespace oasr
