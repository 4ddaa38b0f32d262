#include "quant/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/check.h"
#include "quant/selection.h"

namespace oasr::quant {
namespace {

using Keys = std::span<const std::string_view>;

constexpr std::array<std::string_view, 5> kSpecKeys = {"schemes", "module_types", "ignore",
                                                       "layers", "producer"};
constexpr std::array<std::string_view, 3> kLayerKeys = {"path", "scheme", "smoothed"};
constexpr std::array<std::string_view, 4> kLayerKeysWithZeros = {"path", "scheme", "smoothed",
                                                                 "zero_domain"};
constexpr std::array<std::string_view, 5> kProducerKeys = {"tool", "version", "recipe", "skipped",
                                                           "options"};
constexpr std::array<std::string_view, 2> kSkippedKeys = {"path", "reason"};

Unexpected bad(std::string where, std::string what, std::string remedy = {}) {
  return unexpected(ErrorCode::bad_checkpoint, std::move(what), std::move(where),
                    std::move(remedy));
}

// A JSON value with its place in the file, for messages.
class Node {
 public:
  Node(const Json& value, std::string place) : value_(value), place_(std::move(place)) {}

  const std::string& place() const { return place_; }

  // An object of exactly these keys.
  Status check_keys(Keys keys) const {
    if (!value_.is_object()) return wrong_type("an object");
    for (const auto& [key, value] : value_.items()) {
      if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
      return bad(place_of(key), "the key is not known",
                 fmt::format("known keys: {}", fmt::join(keys, ", ")));
    }
    for (const auto key : keys) {
      if (!value_.contains(key)) return bad(place_of(key), "the key is missing");
    }
    return {};
  }

  bool has(std::string_view key) const { return value_.is_object() && value_.contains(key); }

  // A value of an object that was checked to hold it.
  Node member(std::string_view key) const { return {value_.find(key).value(), place_of(key)}; }

  Result<std::string> text() const {
    if (!value_.is_string()) return wrong_type("a string");
    return value_.get<std::string>();
  }

  Result<bool> flag() const {
    if (!value_.is_boolean()) return wrong_type("a boolean");
    return value_.get<bool>();
  }

  Result<std::vector<Node>> list() const {
    if (!value_.is_array()) return wrong_type("an array");
    std::vector<Node> nodes;
    for (const auto& value : value_) {
      nodes.emplace_back(value, fmt::format("{}[{}]", place_, nodes.size()));
    }
    return nodes;
  }

  Result<std::vector<std::string>> texts() const {
    std::vector<std::string> all;
    for (const Node& node : TRY(list())) all.push_back(TRY(node.text()));
    return all;
  }

  Result<std::map<std::string, std::string>> text_map() const {
    if (!value_.is_object()) return wrong_type("an object");
    std::map<std::string, std::string> all;
    for (const auto& [key, value] : value_.items()) {
      all[key] = TRY(Node(value, place_of(key)).text());
    }
    return all;
  }

 private:
  std::string place_of(std::string_view key) const { return fmt::format("{}.{}", place_, key); }

  Unexpected wrong_type(std::string_view wanted) const {
    const std::string_view type = value_.type_name();
    const std::string_view article = type == "null"                     ? ""
                                     : type[0] == 'o' || type[0] == 'a' ? "an "
                                                                        : "a ";
    return bad(place_, fmt::format("expected {}, found {}{}", wanted, article, type));
  }

  const Json& value_;
  std::string place_;
};

// A path that was not seen before.
Result<std::string> new_path(const Node& entry, std::set<std::string, std::less<>>& seen) {
  const Node node = entry.member("path");
  std::string path = TRY(node.text());
  if (path.empty()) return bad(node.place(), "the path is empty");
  if (!seen.insert(path).second) {
    return bad(node.place(), fmt::format("the path '{}' comes twice", path));
  }
  return path;
}

Result<std::string> scheme_name(const Node& node) {
  std::string name = TRY(node.text());
  if (known_scheme(name)) return name;
  return bad(node.place(), fmt::format("'{}' is not a scheme", name),
             "a newer version of oasr may know it");
}

// Of an entry whose keys were checked.
Result<QuantizedLayer> read_layer(const Node& entry) {
  const bool has_zeros = entry.has("zero_domain");
  QuantizedLayer layer;
  layer.scheme = TRY(scheme_name(entry.member("scheme")));
  layer.smoothed = TRY(entry.member("smoothed").flag());
  if (has_zeros != (*known_scheme(layer.scheme))->zero_domain.has_value()) {
    return bad(entry.place() + ".zero_domain",
               has_zeros ? fmt::format("weights of {} have no zeros", layer.scheme) : "the key is missing");
  }
  if (!has_zeros) return layer;
  const Node node = entry.member("zero_domain");
  const std::string name = TRY(node.text());
  layer.zero_domain = parse_enum(formats::zero_domain_names(), name);
  if (layer.zero_domain) return layer;
  return bad(node.place(), fmt::format("'{}' is not a domain of zeros", name),
             "a newer version of oasr may know it");
}

Status read_layers(const Node& node, QuantizationSpec& spec) {
  std::set<std::string, std::less<>> seen;
  for (const Node& entry : TRY(node.list())) {
    TRY(entry.check_keys(entry.has("zero_domain") ? Keys(kLayerKeysWithZeros) : Keys(kLayerKeys)));
    const std::string path = TRY(new_path(entry, seen));
    spec.layers[path] = TRY(read_layer(entry));
  }
  return {};
}

Result<Producer> read_producer(const Node& node) {
  TRY(node.check_keys(kProducerKeys));
  Producer producer;
  producer.tool = TRY(node.member("tool").text());
  producer.version = TRY(node.member("version").text());
  producer.recipe = TRY(node.member("recipe").text());
  std::set<std::string, std::less<>> seen;
  for (const Node& entry : TRY(node.member("skipped").list())) {
    TRY(entry.check_keys(kSkippedKeys));
    std::string path = TRY(new_path(entry, seen));
    std::string reason = TRY(entry.member("reason").text());
    producer.skipped.push_back({std::move(path), std::move(reason)});
  }
  producer.options = TRY(node.member("options").text_map());
  return producer;
}

}  // namespace

const QuantizedLayer* QuantizationSpec::find(std::string_view path) const {
  const auto found = layers.find(path);
  return found == layers.end() ? nullptr : &found->second;
}

QuantizedLayer quantized_layer(std::string_view scheme, bool smoothed) {
  const auto known = known_scheme(scheme);
  CHECK(known.has_value(), "a layer of no scheme");
  return {.scheme = std::string(scheme), .smoothed = smoothed, .zero_domain = (*known)->zero_domain};
}

OrderedJson to_json(const QuantizationSpec& spec) {
  OrderedJson layers = OrderedJson::array();
  for (const auto& [path, layer] : spec.layers) {
    OrderedJson entry;
    entry["path"] = path;
    entry["scheme"] = layer.scheme;
    entry["smoothed"] = layer.smoothed;
    if (layer.zero_domain) entry["zero_domain"] = enum_name(formats::zero_domain_names(), *layer.zero_domain);
    layers.push_back(std::move(entry));
  }
  OrderedJson skipped = OrderedJson::array();
  for (const auto& layer : spec.producer.skipped) {
    OrderedJson entry;
    entry["path"] = layer.path;
    entry["reason"] = layer.reason;
    skipped.push_back(std::move(entry));
  }
  OrderedJson options = OrderedJson::object();
  for (const auto& [key, value] : spec.producer.options) options[key] = value;

  OrderedJson producer;
  producer["tool"] = spec.producer.tool;
  producer["version"] = spec.producer.version;
  producer["recipe"] = spec.producer.recipe;
  producer["skipped"] = std::move(skipped);
  producer["options"] = std::move(options);

  OrderedJson json;
  json["schemes"] = spec.schemes;
  json["module_types"] = spec.module_types;
  json["ignore"] = spec.ignore;
  json["layers"] = std::move(layers);
  json["producer"] = std::move(producer);
  return json;
}

Result<QuantizationSpec> spec_from_json(const Json& json) {
  const Node root(json, "quantization");
  TRY(root.check_keys(kSpecKeys));
  QuantizationSpec spec;
  for (const Node& node : TRY(root.member("schemes").list())) {
    spec.schemes.push_back(TRY(scheme_name(node)));
  }
  for (const Node& node : TRY(root.member("module_types").list())) {
    spec.module_types.push_back(TRY(node.text()));
    if (parse_enum(quant_kind_names(), spec.module_types.back())) continue;
    return bad(node.place(), fmt::format("'{}' is not a kind of layer", spec.module_types.back()),
               "a newer version of oasr may know it");
  }
  spec.ignore = TRY(root.member("ignore").texts());
  TRY(read_layers(root.member("layers"), spec));
  spec.producer = TRY(read_producer(root.member("producer")));
  return spec;
}

}  // namespace oasr::quant
