// Pieces that the output formats share.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "oasr/outputs.h"

namespace oasr::outputs {

// `text` without white space at its ends, line ends inside as spaces, valid UTF-8.
std::string one_line(std::string_view text);

std::string to_txt(const Transcript& transcript);
std::string to_srt(const Transcript& transcript);
std::string to_vtt(const Transcript& transcript);
std::string to_tsv(const Transcript& transcript);
std::string to_lrc(const Transcript& transcript);
OrderedJson to_json(const Transcript& transcript, const OutputContext& context);

}  // namespace oasr::outputs
