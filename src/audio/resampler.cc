#include "audio/resampler.h"

#include <soxr.h>

namespace oasr {

void Resampler::Delete::operator()(soxr* handle) const { soxr_delete(handle); }

Result<Resampler> Resampler::create(int from, int to) {
  if (from == to) return Resampler(from, to, nullptr);
  const auto io = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
  const auto quality = soxr_quality_spec(SOXR_HQ, 0);
  const auto runtime = soxr_runtime_spec(1);
  soxr_error_t error = nullptr;
  soxr_t handle = soxr_create(from, to, 1, &error, &io, &quality, &runtime);
  if (handle == nullptr || error != nullptr) {
    soxr_delete(handle);
    return unexpected(ErrorCode::internal, std::string("the resampler can not be made: ") +
                                               (error != nullptr ? error : "out of memory"));
  }
  return Resampler(from, to, handle);
}

Status Resampler::push(std::span<const float> samples, std::vector<float>& out) {
  if (!handle_) {
    out.insert(out.end(), samples.begin(), samples.end());
    return {};
  }
  return process(samples, false, out);
}

Status Resampler::finish(std::vector<float>& out) {
  if (!handle_) return {};
  return process({}, true, out);
}

Status Resampler::process(std::span<const float> samples, bool last, std::vector<float>& out) {
  const auto room =
      static_cast<std::size_t>(static_cast<double>(samples.size()) * to_ / from_) + 1024;
  for (;;) {
    const auto before = out.size();
    out.resize(before + room);
    std::size_t consumed = 0;
    std::size_t produced = 0;
    const soxr_error_t error =
        soxr_process(handle_.get(), last ? nullptr : samples.data(), samples.size(), &consumed,
                     out.data() + before, room, &produced);
    out.resize(before + produced);
    if (error != nullptr) {
      return unexpected(ErrorCode::internal, std::string("resampling failed: ") + error);
    }
    samples = samples.subspan(consumed);
    // A full output buffer may hide more; anything less means that all is taken.
    if (samples.empty() && produced < room) return {};
  }
}

}  // namespace oasr
