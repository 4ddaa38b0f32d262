// From a request ("int8_w8a8, but not the first block") and a model's layers to a QuantizationSpec.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "quant/spec.h"

namespace oasr::quant {

// Kinds of layers that hold a matrix, by data, never by the name of a path.
enum class QuantKind : std::uint8_t { linear, pointwise_conv, conv1d, conv2d };
std::span<const EnumName<QuantKind>> quant_kind_names();

// What selection may know of a layer. A model lists its layers as data.
struct LayerFacts {
  std::string path = {};          // "model.encoder.layers.0.fc1"
  QuantKind kind = QuantKind::linear;
  std::int64_t in_features = 0;   // input channels of a convolution
  std::int64_t out_features = 0;
  std::int64_t groups = 1;        // of a convolution
  // Why the layer can not be quantized whatever its shape ("its weight is the token embedding's");
  // empty when it can.
  std::string not_quantizable = {};
  // Paths that other checkpoints store it under, as many rows each, in their order; none: its own.
  std::vector<std::string> parts = {};
};

// What a user asks for. Text forms: a scheme's name, and options KEY=VALUE[,VALUE…] with the keys
// ignore and module_types.
struct QuantRequest {
  std::string scheme = {};               // empty: full precision, or what the checkpoint says
  std::vector<std::string> ignore = {};  // globs over paths
  std::vector<std::string> module_types = {};  // kinds, or conv and all; empty: the default
  std::vector<std::string> layers = {};        // explicit paths; empty: by kind
};

// Adds "ignore=a.*,b.*" or "module_types=linear,conv2d" to a request. invalid_argument: another key
// (with the nearest known), no "=", an empty value.
Status add_option(QuantRequest& request, std::string_view text);

// Kinds of a list of kinds and groups, in the table's order; the default, linear and
// pointwise_conv, for an empty list. conv is every kind but linear. invalid_argument: neither a
// kind nor a group.
Result<std::vector<QuantKind>> resolve_kinds(std::span<const std::string> module_types);

// How strict a request is about static input scales.
enum class Origin : std::uint8_t {
  online,      // weights are quantized while a model is loaded: no scale was calibrated
  calibrated,  // a recipe measures input scales
};

// Chooses the layers of a full-precision model; none for a request without a scheme. conv1d and
// conv2d get the static variant of the scheme or of its fallback. Layers that no kernel can serve (the
// scheme's shapes, groups, not_quantizable) get the scheme's fallback or stay at full precision when they
// were selected by kind, with the reason in producer.skipped, and are errors when they are named. version
// and options of the producer are left empty, and so is recipe unless it is "online".
//
// Errors (invalid_argument or unsupported, each with a remedy): an unknown or unserved scheme, a glob
// or a path that matches nothing, options without a scheme, named layers beside ignore or module_types,
// a kind whose input scale must be static under Origin::online (points at `oasr quantize`), a static
// scheme under Origin::online, a convolution kind with a format that has no convolutions, a choice that
// leaves nothing to quantize.
Result<QuantizationSpec> select(const QuantRequest& request, std::span<const LayerFacts> layers,
                                Origin origin);

// The authority of a quantized checkpoint's own spec over a request (invalid_argument). Naming one
// of its schemes or none is fine; its schemes are those that it was asked for and those of its
// layers. Another scheme, and any ignore, module_types or layers, are errors. An empty spec has no
// authority.
Status check_authority(const QuantizationSpec& stored, const QuantRequest& request);

// Every layer of the spec must be a layer of the model that can be served so: bad_checkpoint when
// it can not, unsupported when its scheme is not served; `where` is its path.
Status check_layers(const QuantizationSpec& spec, std::span<const LayerFacts> layers);

}  // namespace oasr::quant
