// Word and character errors: of texts beside their references, in a report, and of two reports.
//
// An evaluation is: read what was said (manifests, or a file of references), get a text for each
// utterance (a Recognizer, or a file of hypotheses), score_utterances(), write the report.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "oasr/result.h"

namespace oasr {

struct ErrorCounts {
  std::int64_t reference = 0;  // words or characters of the references
  std::int64_t substitutions = 0, deletions = 0, insertions = 0;

  std::int64_t errors() const { return substitutions + deletions + insertions; }
  bool operator==(const ErrorCounts&) const = default;
};

// Errors over reference length in percent, and the ends of its 95 % interval; nothing where the
// references are empty.
struct ErrorRate {
  ErrorCounts counts;
  std::optional<double> percent, low, high;
};

// One utterance: what was said, and what was recognized.
struct EvalUtterance {
  std::string set, id;                // together they name it
  std::string speaker;                // empty: not known
  std::string audio;                  // a path; empty: text only
  double seconds = 0;                 // of audio; 0: not known
  std::string reference, hypothesis;  // as given
  // Why there is no hypothesis ("missing", or an error): its words count as deleted. Empty: there
  // is one.
  std::string failure;
  // Made by score_utterances().
  std::string normalized_reference, normalized_hypothesis;
  ErrorCounts words, characters;
};

// A row of a manifest: `hypothesis` is empty still.
struct EvalInput {
  EvalUtterance utterance;
  int sample_rate = 0;  // Hz, as declared; 0: not declared
  std::string where;    // "test.jsonl:12"
};

struct EvalInputs {
  std::vector<EvalInput> rows;
  std::vector<std::string> notes;  // what was left out or looks wrong, with line numbers
};

struct EvalReadOptions {
  // A reference without text: "refuse" (an error with the line numbers), "skip" (left out, with a
  // note), or "score" (whatever is recognized is inserted). "ignore": texts are not needed at all.
  std::string empty_reference = "refuse";
  std::string audio_root = {};  // what paths of audio are relative to; empty: the manifest's folder
  std::int64_t limit = 0;  // utterances of a set, the first ones; 0: all
};

// JSON Lines: "audio" (or "audio_filepath"), relative to the file; "text"; and if there "id" (else
// the audio as written), "speaker", "set" (else the file's name, or its folder's if that is
// manifest), "duration" (seconds), "sample_rate" (Hz). Every line is looked at, and errors name
// those that are wrong. Errors: not_found, io; invalid_argument for what is no such line, an id
// that is there twice, bytes that are not UTF-8, a file without utterances.
Result<EvalInputs> read_eval_manifests(std::span<const std::string> paths,
                                       const EvalReadOptions& options);

// Looks at the audio files of the rows: a not_found error names those that are missing; a file
// whose rate is not the declared one gets a note.
Status check_eval_audio(EvalInputs& inputs);

// A note if the audio is not as long as its row declares: more than 0.1 s and 1 % apart.
std::optional<std::string> duration_note(const EvalInput& row, double seconds);

struct ScoreFiles {
  std::string reference, hypothesis;  // paths
  // "kaldi" (id words), "tsv" (id, tab, text), "trn" (text (id)), "jsonl", or "auto": by the file's
  // name, else by its lines.
  std::string format = "auto";
  std::string utt2spk;            // a Kaldi file of speakers; empty: none
  std::string speaker_separator;  // the speaker is the id up to this; empty: is not known
  EvalReadOptions read;
};

struct ScoreTexts {
  std::vector<EvalUtterance> utterances;  // in the order of the references
  std::vector<std::string> extra;         // ids of hypotheses without a reference
  std::vector<std::string> notes;
};

// The two files, joined by id. A reference without hypothesis is "missing". Errors as above.
Result<ScoreTexts> read_score_files(const ScoreFiles& files);

struct EvalOptions {
  std::string normalizer = "none";  // none, basic, whisper-english, chinese-chars
  // "unit": the fewest edits. "sclite": substitutions cost 4, others 3, as NIST's tool counts.
  std::string costs = "unit";
  int resamples = 10000;   // of the bootstrap over utterances
  std::uint64_t seed = 1;  // the same seed gives the same intervals
};

// An invalid_argument error for a name or number that is not served.
Status check_eval_options(const EvalOptions& options);

struct EvalGroup {
  std::string name;
  std::int64_t utterances = 0;
  std::int64_t with_errors = 0;  // utterances with a word error
  double seconds = 0;
  ErrorRate words, characters;
};

// Something that was often taken for something else; one side is empty for insertions and
// deletions.
struct EvalConfusion {
  std::string reference, hypothesis;
  std::int64_t count = 0;
};

struct EvalReport {
  std::string subject;               // what was measured: "base", or the file of hypotheses
  std::string configuration = "{}";  // how: a JSON object
  EvalOptions options;
  EvalGroup total;
  std::vector<EvalGroup> sets, lengths, speakers;
  std::string length_unit;  // of `lengths`: "s", or "words" where durations are not known
  std::vector<EvalConfusion> substitutions, deletions, insertions;  // the most frequent
  double audio_seconds = 0, wall_seconds = 0;  // decoded, and how long that took; 0: nothing was
  double peak_mib = 0;                         // memory of the process; 0: nothing was decoded
  std::vector<std::string> extra, notes;
  std::vector<EvalUtterance> utterances;
};

// Normalizes, counts and groups. The report has no subject, configuration or times yet. Errors:
// options; an utterance too long to compare.
Result<EvalReport> score_utterances(std::vector<EvalUtterance> utterances,
                                    const EvalOptions& options);

std::string eval_json(const EvalReport& report);
std::string eval_text(const EvalReport& report);  // tables, in lines
std::string eval_html(const EvalReport& report);  // one page that needs no other file

// A report that eval_json() wrote. Errors: not_found, io, invalid_argument for other files.
Result<EvalReport> read_eval_report(const std::string& path);
Result<EvalReport> parse_eval_report(const std::string& text, const std::string& where);

// One group in two reports. `difference` is b − a in points; `p` is twice the share of resamples on
// the side of zero that is less likely.
struct EvalDifference {
  std::string name;
  std::int64_t utterances = 0;
  ErrorCounts a, b;
  std::optional<double> difference, low, high, p;
};

struct EvalChange {
  std::size_t a = 0, b = 0;  // indices of the utterance in the two reports
  std::int64_t errors = 0;   // of b more than of a, words
};

struct EvalComparison {
  std::vector<EvalDifference> groups;  // all first, then the sets if there are several
  std::vector<EvalDifference> lengths;  // as in the first report, if there are several
  std::string length_unit;             // of `lengths`: "s" or "words"
  std::vector<EvalChange> changes;     // other normalized texts; the largest first
  std::int64_t better = 0, worse = 0, other = 0, same = 0;  // utterances, of b beside a
};

// Paired bootstrap over the utterances, with the options of `a`. Errors (invalid_argument): other
// utterances or references, another normalizer or costs; they name the first difference.
Result<EvalComparison> compare_reports(const EvalReport& a, const EvalReport& b);

std::string comparison_json(const EvalReport& a, const EvalReport& b,
                            const EvalComparison& comparison);
// `most`: changed utterances that are shown at most; 0: all.
std::string comparison_text(const EvalReport& a, const EvalReport& b,
                            const EvalComparison& comparison, std::size_t most = 20);

// What a long evaluation has done so far, in a file beside its result: one line an utterance,
// written as soon as it is known. Not thread-safe; a second one on the same file is an error.
class EvalJournal {
 public:
  struct Entry {
    std::string set, id, audio, hypothesis, failure;
    double seconds = 0;  // of audio
    double wall = 0;     // since the entry before it
    double peak_mib = 0;
    std::vector<std::string> warnings;
  };

  // Opens or makes the file. `configuration` is a JSON object of what the texts depend on. Errors:
  // io; invalid_argument if the file is of another configuration (names what differs), or is none.
  static Result<EvalJournal> open(const std::string& path, const std::string& configuration);
  ~EvalJournal();
  EvalJournal(EvalJournal&&) noexcept;
  EvalJournal& operator=(EvalJournal&&) noexcept;

  // What was there when it was opened; of an utterance that was done twice the last.
  const std::vector<Entry>& done() const;
  Status append(const Entry& entry);
  // Removes the file: the result is written.
  Status remove();

 private:
  struct Impl;
  explicit EvalJournal(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace oasr
