#include <array>

#include "cli/arguments.h"

namespace oasr::cli {
namespace {

using enum Spelling::Kind;

constexpr std::array kSpellings = {
    // whisper.cpp: short options of several letters
    Spelling{"-bs", rename, "--beam-size"},
    Spelling{"-bo", rename, "--best-of"},
    Spelling{"-ot", rename, "--offset-t"},
    Spelling{"-tp", rename, "--temperature"},
    Spelling{"-tpi", rename, "--temperature-increment-on-fallback"},
    Spelling{"-lpt", rename, "--logprob-threshold"},
    Spelling{"-nth", rename, "--no-speech-threshold"},
    Spelling{"-vt", rename, "--vad-threshold"},
    Spelling{"-vspd", rename, "--vad-min-speech-ms"},
    Spelling{"-vsd", rename, "--vad-min-silence-ms"},
    Spelling{"-vmsd", rename, "--vad-max-speech-s"},
    Spelling{"-vp", rename, "--vad-speech-pad-ms"},
    Spelling{"-of", rename, "--output-file"},
    Spelling{"-tr", switches, "--translate"},
    Spelling{"-nf", switches, "--no-fallback"},
    Spelling{"-nt", switches, "--no-timestamps"},
    Spelling{"-np", switches, "--quiet"},
    Spelling{"-pp", switches, "--progress"},
    Spelling{"-otxt", switches, "--output-format=txt"},
    Spelling{"-osrt", switches, "--output-format=srt"},
    Spelling{"-ovtt", switches, "--output-format=vtt"},
    Spelling{"-olrc", switches, "--output-format=lrc"},
    Spelling{"-oj", switches, "--output-format=json"},
    Spelling{"-ojf", switches, "--output-format=json"},
    Spelling{"-sns", ignored, ""},   // the checkpoint's suppress set is the default
    Spelling{"-ng", switches, "--device=cpu"},
    Spelling{"-ocsv", refused, "csv is not written; use --output-format tsv"},
    Spelling{"-wt", refused, "there is no word threshold; use --word-timestamps"},
    Spelling{"-et", refused, "the entropy check is not served; use --compression-ratio-threshold"},
    Spelling{"-dtw", refused, "the alignment heads of the checkpoint are used: --word-timestamps"},
    Spelling{"-p", refused, "one process; use --threads, --batch-size or --shard"},
    Spelling{"-on", refused, "segments are not skipped by number; use --offset-t"},
    Spelling{"-mc", refused, "use --condition-on-previous-text False"},
    Spelling{"-ml", refused, "segments are not split by length; use --word-timestamps"},
    Spelling{"-sow", refused, "segments are not split by length; use --word-timestamps"},
    Spelling{"-ac", refused, "the audio context can not be shortened"},
    Spelling{"-dl", refused, "use --output-format json and read \"language\""},
    Spelling{"-di", refused, "speakers are not told apart"},
    Spelling{"-tdrz", refused, "speakers are not told apart"},
    Spelling{"-ps", refused, "special tokens are in \"tokens\" of --output-format json"},
    Spelling{"-pc", refused, "probabilities are in --output-format json"},
    Spelling{"-dev", refused, "use --device cuda:N"},
    Spelling{"-fa", refused, "attention has one implementation"},
    Spelling{"-nfa", refused, "attention has one implementation"},
    Spelling{"-vm", refused, "the VAD model is built in; leave the option out"},
    Spelling{"-vo", refused, "VAD segments do not overlap; use --vad-speech-pad-ms"},
    // whisper.cpp: long options
    Spelling{"--file", rename, ""},  // its value is an input
    Spelling{"--prompt", rename, "--initial-prompt"},
    Spelling{"--temperature-inc", rename, "--temperature-increment-on-fallback"},
    Spelling{"--logprob-thold", rename, "--logprob-threshold"},
    Spelling{"--no-speech-thold", rename, "--no-speech-threshold"},
    Spelling{"--vad-min-speech-duration-ms", rename, "--vad-min-speech-ms"},
    Spelling{"--vad-min-silence-duration-ms", rename, "--vad-min-silence-ms"},
    Spelling{"--vad-max-speech-duration-s", rename, "--vad-max-speech-s"},
    Spelling{"--print-progress", switches, "--progress"},
    Spelling{"--no-prints", switches, "--quiet"},
    Spelling{"--output-txt", switches, "--output-format=txt"},
    Spelling{"--output-srt", switches, "--output-format=srt"},
    Spelling{"--output-vtt", switches, "--output-format=vtt"},
    Spelling{"--output-lrc", switches, "--output-format=lrc"},
    Spelling{"--output-json", switches, "--output-format=json"},
    Spelling{"--output-json-full", switches, "--output-format=json"},
    Spelling{"--suppress-nst", ignored, ""},
    Spelling{"--no-gpu", switches, "--device=cpu"},
    Spelling{"--output-csv", refused, "csv is not written; use --output-format tsv"},
    Spelling{"--entropy-thold", refused,
             "the entropy check is not served; use --compression-ratio-threshold"},
    Spelling{"--word-thold", refused, "there is no word threshold; use --word-timestamps"},
    Spelling{"--dtw", refused, "the alignment heads of the checkpoint are used: --word-timestamps"},
    Spelling{"--processors", refused, "one process; use --threads, --batch-size or --shard"},
    Spelling{"--max-context", refused, "use --condition-on-previous-text False"},
    Spelling{"--max-len", refused, "segments are not split by length; use --word-timestamps"},
    Spelling{"--split-on-word", refused, "segments are not split by length; use --word-timestamps"},
    Spelling{"--detect-language", refused, "use --output-format json and read \"language\""},
    Spelling{"--diarize", refused, "speakers are not told apart"},
    Spelling{"--tinydiarize", refused, "speakers are not told apart"},
    Spelling{"--suppress-regex", refused, "use --suppress-tokens with token ids"},
    Spelling{"--grammar", refused, "grammars are not served; use --initial-prompt"},
    Spelling{"--vad-model", refused, "the VAD model is built in; leave the option out"},
    Spelling{"--vad-samples-overlap", refused, "VAD segments do not overlap"},
    // openai-whisper and faster-whisper
    Spelling{"--length-penalty-alpha", rename, "--length-penalty"},
    Spelling{"--vad-filter", switches, "--vad"},
    Spelling{"--vad-min-speech-duration", rename, "--vad-min-speech-ms"},
    Spelling{"--vad-min-silence-duration", rename, "--vad-min-silence-ms"},
    Spelling{"--vad-max-speech-duration", rename, "--vad-max-speech-s"},
    Spelling{"--vad-speech-pad", rename, "--vad-speech-pad-ms"},
    Spelling{"--log-prob-threshold", rename, "--logprob-threshold"},
    Spelling{"--compute-type", refused,
             "int8 is --quantization int8_w8a8; other types are --dtype float32, float16, bfloat16 (storage), and on a GPU "
             "--arithmetic float16, bfloat16"},
    Spelling{"--without-timestamps", switches, "--no-timestamps"},
    Spelling{"--model-dir", refused, "the cache folder is set by OASR_CACHE_DIR"},
    Spelling{"--fp16", refused, "storage is set by --dtype float16, arithmetic of a GPU by --arithmetic float16"},
    Spelling{"--highlight-words", refused, "words are in --output-format json"},
    Spelling{"--max-line-width", refused, "subtitle lines are not wrapped"},
    Spelling{"--max-line-count", refused, "subtitle lines are not wrapped"},
    Spelling{"--max-words-per-line", refused, "subtitle lines are not wrapped"},
};

constexpr std::array kValueSpellings = {
    ValueSpelling{"--fp16", "false", ""},
    ValueSpelling{"--compute-type", "default", "--dtype=auto"},
    ValueSpelling{"--compute-type", "auto", "--dtype=auto"},
    ValueSpelling{"--compute-type", "float32", "--dtype=float32"},
    ValueSpelling{"--compute-type", "float16", "--dtype=float16"},
    ValueSpelling{"--compute-type", "bfloat16", "--dtype=bfloat16"},
};

}  // namespace

std::span<const ValueSpelling> value_spellings() { return kValueSpellings; }

std::span<const Spelling> spellings() { return kSpellings; }

}  // namespace oasr::cli
