#include "checkpoint/yaml_document.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <string>

namespace oasr {
namespace {

constexpr int kDeepest = 64;
constexpr std::size_t kMostNodes = std::size_t{1} << 20;

// The whole of `text` as a number.
template <class T>
bool read_number(std::string_view text, T& value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

Json plain_scalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return nullptr;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  if (std::int64_t integer = 0; read_number(text, integer)) return integer;
  // from_chars also takes "inf" and "nan", which YAML writes with a dot: those are text.
  const char first = text[std::min(text.find_first_not_of("+-"), text.size() - 1)];
  if (double number = 0; (first == '.' || (first >= '0' && first <= '9')) && read_number(text, number)) {
    return number;
  }
  return text;
}

class Converter {
 public:
  explicit Converter(std::string_view where) : where_(where) {}

  Result<Json> convert(const YAML::Node& node, int depth) {
    if (depth > kDeepest) return bad(node, "is nested too deeply");
    if (++nodes_ > kMostNodes) return bad(node, "grows beyond all measure when its aliases are written out");
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null: return Json(nullptr);
      case YAML::NodeType::Scalar:
        return node.Tag() == "!" ? Json(node.Scalar()) : plain_scalar(node.Scalar());
      case YAML::NodeType::Sequence: return sequence(node, depth);
      case YAML::NodeType::Map: return mapping(node, depth);
    }
    return bad(node, "is of no kind that YAML has");
  }

 private:
  Result<Json> sequence(const YAML::Node& node, int depth) {
    Json array = Json::array();
    for (const YAML::Node& item : node) {
      Json value = TRY(convert(item, depth + 1));
      array.push_back(std::move(value));
    }
    return array;
  }

  Result<Json> mapping(const YAML::Node& node, int depth) {
    Json object = Json::object();
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) return bad(entry.first, "has a key that is no plain text");
      const std::string& key = entry.first.Scalar();
      Json value = TRY(convert(entry.second, depth + 1));
      if (!object.emplace(key, std::move(value)).second) {
        return bad(entry.first, "has the key \"" + key.substr(0, 60) + "\" twice");
      }
    }
    return object;
  }

  Unexpected bad(const YAML::Node& node, const std::string& what) const {
    return unexpected(ErrorCode::bad_checkpoint,
                      what + " (line " + std::to_string(node.Mark().line + 1) + ")", std::string(where_));
  }

  std::string_view where_;
  std::size_t nodes_ = 0;
};

}  // namespace

Result<Json> parse_yaml(std::string_view text, std::string_view where) {
  if (text.find('\0') != std::string_view::npos) {
    return unexpected(ErrorCode::bad_checkpoint, "holds zero bytes: it is no YAML", std::string(where));
  }
  try {
    Json json = TRY(Converter(where).convert(YAML::Load(std::string(text)), 0));
    // JSON text is how documents travel: what is not UTF-8 can not be written.
    return parse_json(json.dump(), where);
  } catch (const YAML::Exception& error) {
    return unexpected(ErrorCode::bad_checkpoint,
                      "is not YAML: " + error.msg + " (line " + std::to_string(error.mark.line + 1) + ")",
                      std::string(where));
  } catch (const Json::exception&) {
    return unexpected(ErrorCode::bad_checkpoint, "is not UTF-8", std::string(where));
  }
}

}  // namespace oasr
