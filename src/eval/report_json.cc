#include <fmt/format.h>

#include "base/json.h"
#include "eval/lines.h"
#include "eval/report.h"
#include "oasr/version.h"

namespace oasr {
namespace eval {
namespace {

constexpr int kVersion = 1;
constexpr std::string_view kFormat = "oasr-eval";

OrderedJson group_json(const EvalGroup& group) {
  return {{"name", group.name},
          {"utterances", group.utterances},
          {"with_errors", group.with_errors},
          {"seconds", group.seconds},
          {"words", rate_json(group.words)},
          {"characters", rate_json(group.characters)}};
}

OrderedJson groups_json(const std::vector<EvalGroup>& groups) {
  auto list = OrderedJson::array();
  for (const auto& group : groups) list.push_back(group_json(group));
  return list;
}

OrderedJson confusions_json(const std::vector<EvalConfusion>& confusions) {
  auto list = OrderedJson::array();
  for (const auto& c : confusions) {
    OrderedJson row;
    if (!c.reference.empty()) row["reference"] = c.reference;
    if (!c.hypothesis.empty()) row["hypothesis"] = c.hypothesis;
    row["count"] = c.count;
    list.push_back(std::move(row));
  }
  return list;
}

OrderedJson utterance_json(const EvalUtterance& u) {
  OrderedJson row = {{"set", u.set}, {"id", u.id}};
  if (!u.speaker.empty()) row["speaker"] = u.speaker;
  if (!u.audio.empty()) row["audio"] = u.audio;
  if (u.seconds > 0) row["seconds"] = u.seconds;
  if (!u.failure.empty()) row["failure"] = u.failure;
  row["reference"] = u.reference;
  row["hypothesis"] = u.hypothesis;
  row["normalized_reference"] = u.normalized_reference;
  row["normalized_hypothesis"] = u.normalized_hypothesis;
  row["words"] = counts_json(u.words);
  row["characters"] = counts_json(u.characters);
  return row;
}

// A reader that remembers whether everything was there and of its type.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json), good_(json.is_object()) {}

  std::string text(const char* key, bool required = true) {
    const auto* value = find(key, required);
    if (value == nullptr) return {};
    good_ = good_ && value->is_string();
    return value->is_string() ? value->get<std::string>() : std::string();
  }
  std::int64_t count(const char* key) {
    const auto* value = find(key, true);
    const bool is_count = value != nullptr && value->is_number_integer() && *value >= 0 &&
                          *value <= (std::int64_t{1} << 40);
    good_ = good_ && is_count;
    return is_count ? value->get<std::int64_t>() : 0;
  }
  double real(const char* key) {
    const auto* value = find(key, false);
    if (value == nullptr) return 0;
    good_ = good_ && value->is_number();
    return value->is_number() ? value->get<double>() : 0;
  }
  const Json& object(const char* key) {
    static const Json kNone = Json::object();
    const auto* value = find(key, true);
    good_ = good_ && value != nullptr && value->is_object();
    return value != nullptr && value->is_object() ? *value : kNone;
  }
  ErrorCounts counts(const char* key) {
    Reader inner(object(key));
    ErrorCounts counts{inner.count("reference"), inner.count("substitutions"),
                       inner.count("deletions"), inner.count("insertions")};
    good_ = good_ && inner.good_;
    return counts;
  }
  bool good() const { return good_; }

 private:
  const Json* find(const char* key, bool required) {
    const auto found = json_.is_object() ? json_.find(key) : json_.end();
    const bool is_there = json_.is_object() && found != json_.end();
    good_ = good_ && (is_there || !required);
    return is_there ? &*found : nullptr;
  }
  const Json& json_;
  bool good_;
};

bool read_utterance(const Json& row, EvalUtterance& u) {
  Reader reader(row);
  u.set = reader.text("set");
  u.id = reader.text("id");
  u.speaker = reader.text("speaker", false);
  u.audio = reader.text("audio", false);
  u.seconds = reader.real("seconds");
  u.failure = reader.text("failure", false);
  u.reference = reader.text("reference");
  u.hypothesis = reader.text("hypothesis");
  u.normalized_reference = reader.text("normalized_reference");
  u.normalized_hypothesis = reader.text("normalized_hypothesis");
  u.words = reader.counts("words");
  u.characters = reader.counts("characters");
  return reader.good();
}

}  // namespace

OrderedJson counts_json(const ErrorCounts& counts) {
  return {{"reference", counts.reference},
          {"substitutions", counts.substitutions},
          {"deletions", counts.deletions},
          {"insertions", counts.insertions}};
}

OrderedJson rate_json(const ErrorRate& rate) {
  auto json = counts_json(rate.counts);
  json["percent"] = number_json(rate.percent);
  json["low"] = number_json(rate.low);
  json["high"] = number_json(rate.high);
  return json;
}

OrderedJson strings_json(const std::vector<std::string>& strings) {
  auto list = OrderedJson::array();
  for (const auto& text : strings) list.push_back(text);
  return list;
}

}  // namespace eval

std::string eval_json(const EvalReport& report) {
  using namespace eval;
  OrderedJson json = {{"format", kFormat},
                      {"version", kVersion},
                      {"oasr", version()},
                      {"subject", report.subject},
                      {"normalizer", report.options.normalizer},
                      {"costs", report.options.costs},
                      {"bootstrap",
                       {{"resamples", report.options.resamples},
                        {"seed", report.options.seed},
                        {"confidence", 0.95}}},
                      {"configuration", OrderedJson::parse(report.configuration, nullptr, false)}};
  if (report.audio_seconds > 0) {
    json["speed"] = {{"audio_seconds", report.audio_seconds},
                     {"wall_seconds", report.wall_seconds},
                     {"real_time_factor", report.wall_seconds / report.audio_seconds},
                     {"peak_mib", report.peak_mib}};
  }
  json["total"] = group_json(report.total);
  json["sets"] = groups_json(report.sets);
  json["length_unit"] = report.length_unit;
  json["lengths"] = groups_json(report.lengths);
  json["speakers"] = groups_json(report.speakers);
  json["confusions"] = {{"substitutions", confusions_json(report.substitutions)},
                        {"deletions", confusions_json(report.deletions)},
                        {"insertions", confusions_json(report.insertions)}};
  auto failed = OrderedJson::array();
  for (const auto& u : report.utterances) {
    if (!u.failure.empty())
      failed.push_back({{"set", u.set}, {"id", u.id}, {"failure", u.failure}});
  }
  json["without_hypothesis"] = std::move(failed);
  json["extra_hypotheses"] = strings_json(report.extra);
  json["notes"] = strings_json(report.notes);
  auto utterances = OrderedJson::array();
  for (const auto& u : report.utterances) utterances.push_back(utterance_json(u));
  json["utterances"] = std::move(utterances);
  return dump_json(json, 1) + "\n";
}

Result<EvalReport> parse_eval_report(const std::string& text, const std::string& where) {
  const auto bad = [&](std::string what) {
    return unexpected(ErrorCode::invalid_argument, std::move(what), where,
                      "oasr eval --output writes such files");
  };
  const auto parsed = parse_json(text, where);
  if (!parsed) return bad(parsed.error().what);
  eval::Reader reader(*parsed);
  if (reader.text("format") != eval::kFormat) return bad("is not a result of oasr eval");
  if (reader.count("version") != eval::kVersion) return bad("is of another version of the format");
  EvalReport report;
  report.subject = reader.text("subject");
  report.options.normalizer = reader.text("normalizer");
  report.options.costs = reader.text("costs");
  report.configuration = dump_json(OrderedJson(reader.object("configuration")));
  eval::Reader bootstrap(reader.object("bootstrap"));
  report.options.resamples = static_cast<int>(bootstrap.count("resamples"));
  report.options.seed = static_cast<std::uint64_t>(bootstrap.count("seed"));
  if (!reader.good() || !bootstrap.good()) return bad("a key is missing, or of another type");
  if (auto good = check_eval_options(report.options); !good) return bad(good.error().message());
  const auto rows = parsed->find("utterances");
  if (rows == parsed->end() || !rows->is_array()) return bad("has no \"utterances\"");
  for (const auto& row : *rows) {
    EvalUtterance utterance;
    if (!eval::read_utterance(row, utterance)) {
      return bad(fmt::format("utterance {} is not whole", report.utterances.size() + 1));
    }
    report.utterances.push_back(std::move(utterance));
  }
  return report;
}

Result<EvalReport> read_eval_report(const std::string& path) {
  const auto text = TRY(eval::read_lines_file(path));
  return parse_eval_report(text, path);
}

}  // namespace oasr
