// The 4-bit weight in the tensors of another toolkit, every number checked.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/foreign_w4.h"
#include "formats/w4_import.h"
#include "formats/w4_packed.h"
#include "formats/w4_weight.h"

namespace oasr::load {

// What a channel's zero is multiplied by, token by token.
enum class ZeroSum : std::uint8_t {
  codes,   // the sum of the int8 input, exact: the only one that is served
  inputs,  // the sum of the input before it is quantized, as QServe's kernels have it
};

// What the user, or a file, says of 4-bit weights: all of it is verified where tensors tell, and what they do
// not tell has to be here.
struct W4Claims {
  std::optional<formats::W4Form> form;       // tensors tell it
  std::optional<formats::ZeroDomain> zeros;  // packed tensors do not
  std::optional<formats::ScaleOrder> order;  // no tensor of groups does; channels have none
  std::optional<formats::CodeSet> codes = {};  // that have to be int8 (default: those that occur)
  std::optional<ZeroSum> sum = {};             // of channels
  bool requantize = false;                   // scales that fit nothing are replaced, at a loss
};

// "group=128,zeros=pre_scaled,order=quads,codes=all": group is 128 or channel. invalid_argument: another key or
// value, a key twice.
Result<W4Claims> parse_w4_claims(std::string_view text);
std::string w4_claims_text(const W4Claims& claims);  // what parse_w4_claims() reads

// The weight of one layer. Errors: bad_checkpoint for tensors that do not fit each other or break a rule (the
// place is named), invalid_argument for a claim that they contradict or that is missing, unsupported for
// numbers that have no exact form and may not be requantized, and for the sum of inputs.
Result<formats::ImportedW4> foreign_weight(ForeignW4 toolkit, const ForeignTensors& tensors,
                                           const W4Claims& claims);

}  // namespace oasr::load
