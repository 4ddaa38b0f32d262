// The GPU kernels of a build without CUDA: nobody gets here, since Gpu::open() gives none.
#include "base/check.h"
#include "kernels/activate/cuda.h"
#include "kernels/attention/cuda.h"
#include "kernels/ctc_beam/op.h"
#include "kernels/ctc_frames/cuda.h"
#include "kernels/depthwise_conv1d/cuda.h"
#include "kernels/conv2d/cuda.h"
#include "kernels/linear/cuda.h"
#include "kernels/mel/cuda.h"
#include "kernels/rows/cuda.h"
#include "kernels/norm/cuda.h"
#include "kernels/peak/cuda.h"
#include "kernels/quantize/cuda.h"
#include "kernels/scaled_conv/cuda.h"
#include "kernels/scaled_mm/cublaslt.h"
#include "kernels/scaled_mm/cuda.h"

namespace oasr::kernels {
namespace {

[[noreturn]] void absent() { CHECK(false, "a GPU in a build without CUDA"); }

}  // namespace

void activate_rows_cuda(Gpu&, const ActivateRowsArgs&) { absent(); }
void glu_cuda(Gpu&, const GluArgs&) { absent(); }

void attention_cuda(Gpu&, std::span<const AttentionArgs>, Arithmetic) { absent(); }
void kv_append_cuda(Gpu&, std::span<const AppendArgs>) { absent(); }
void kv_copy_cuda(Gpu&, std::span<const CopyArgs>) { absent(); }
void kv_drop_front_cuda(Gpu&, std::span<const DropArgs>) { absent(); }

void ctc_prefix_beam(Gpu&, const CtcBeamArgs&) { absent(); }
void ctc_frames_cuda(Gpu&, const CtcFramesArgs&) { absent(); }

void depthwise_conv1d_cuda(Gpu&, const DepthwiseConv1dArgs&) { absent(); }

void linear_cuda(Gpu&, const LinearArgs&, Arithmetic, std::int64_t) { absent(); }

void mel_frames_cuda(Gpu&, const MelFramesArgs&) { absent(); }

void embed_rows_cuda(Gpu&, const EmbedRowsArgs&) { absent(); }
void gather_rows_cuda(Gpu&, ConstMatrix, std::span<const std::int32_t>, Matrix) { absent(); }
void shift_scale_rows_cuda(Gpu&, const ShiftScaleRowsArgs&) { absent(); }
void transpose_in_cuda(Gpu&, std::span<const float>, Matrix) { absent(); }
void to_host_cuda(Gpu&, ConstMatrix, std::span<float>) { absent(); }
void first_not_finite_cuda(Gpu&, ConstMatrix) { absent(); }

double gpu_peak_gops(Gpu&, GpuPeak, GpuPeakUnit) { absent(); }
double gpu_peak_gops(Gpu&, GpuPeak) { absent(); }

void layer_norm_cuda(Gpu&, const LayerNormArgs&) { absent(); }
void quantize_per_token_cuda(Gpu&, const QuantizePerTokenArgs&) { absent(); }
void quantize_static_cuda(Gpu&, const QuantizeStaticArgs&) { absent(); }
void layer_norm_quant_cuda(Gpu&, const LayerNormQuantArgs&) { absent(); }
void scaled_mm_cuda(Gpu&, const ScaledMMArgs&, const FloatOutput&, ScaledMMBackend) { absent(); }
void scaled_mm_cuda(Gpu&, const ScaledMMArgs&, const Int8Output&, ScaledMMBackend) { absent(); }
void scaled_mm_cuda(Gpu&, const DynamicScaledMMArgs&, const FloatOutput&, ScaledMMBackend) { absent(); }
void scaled_mm_cuda(Gpu&, const DynamicScaledMMArgs&, const Int8Output&, ScaledMMBackend) { absent(); }
void scaled_mm_cuda(Gpu&, const StaticScaledMMArgs&, const FloatOutput&, ScaledMMBackend) { absent(); }
void scaled_mm_cuda(Gpu&, const StaticScaledMMArgs&, const Int8Output&, ScaledMMBackend) { absent(); }
void scaled_mm_cuda(Gpu&, const ScaledMMArgs&, const FloatOutput&, ScaledMMTile) { absent(); }
ScaledMMTile scaled_mm_tile(std::int64_t, std::int64_t, std::int64_t, const GpuInfo&, ScaledMMBackend) { absent(); }
bool scaled_mm_has_wgmma(const GpuInfo&) { return false; }
bool scaled_mm_runs(ScaledMMTile, const GpuInfo&) { return false; }
Status open_cublaslt(Gpu&) { absent(); }
void conv2d_cuda(Gpu&, const Conv2dArgs&, Arithmetic) { absent(); }
void scaled_conv_cuda(Gpu&, const ScaledConvArgs&, const FloatOutput&, ScaledMMBackend) { absent(); }
void scaled_conv_cuda(Gpu&, const StaticScaledConvArgs&, const FloatOutput&, ScaledMMBackend) { absent(); }

}  // namespace oasr::kernels
