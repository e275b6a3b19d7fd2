#include "kernels/cpu/convolution.h"

#include <algorithm>
#include <vector>

#include "core/numeric/simd_disabled_targets.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/team.h"
#include "refimpl/ops/recurrence.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/convolution.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using V32 = hn::Vec<F32>;

#include "kernels/cpu/logistic.h"

// inputs[i] [channels], the oldest first, null for one before the text; w [kernel, channels].
void convolve_row(const float* const* inputs, const float* w, const float* bias, std::size_t kernel,
                  std::size_t channels, bool silu, float* y) {
  const std::size_t lanes = hn::Lanes(F32());
  for (std::size_t c = 0; c < channels; c += lanes) {
    const std::size_t count = std::min(lanes, channels - c);
    V32 sum = load_some(bias + c, count);
    for (std::size_t i = 0; i < kernel; ++i) {
      if (inputs[i] != nullptr)
        sum = hn::MulAdd(load_some(w + i * channels + c, count), load_some(inputs[i] + c, count), sum);
    }
    store_some(silu ? hn::Mul(sum, sigmoid(sum)) : sum, y + c, count);
  }
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(convolve_row);

namespace {

struct Taps {
  std::size_t kernel = 0, channels = 0;
  std::vector<float> w, bias;  // [kernel, channels], [channels]
};

Taps taps_of(const ConvolutionCall& call, const Arithmetic& arithmetic) {
  const std::vector<double> w = vector_of(call.weight, arithmetic), bias = vector_of(call.bias, arithmetic);
  check_shapes(call, w, bias);
  Taps taps = {w.size() / call.x.columns(), call.x.columns(), {}, {bias.begin(), bias.end()}};
  taps.bias.resize(taps.channels);
  for (std::size_t i = 0; i < taps.kernel; ++i) {
    for (std::size_t c = 0; c < taps.channels; ++c)
      taps.w.push_back(static_cast<float>(w[c * taps.kernel + i]));
  }
  return taps;
}

// The inputs of one sequence by their place: 0 is the oldest of the state.
const float* input_of(const ConvolutionCall& call, const SequenceState& s, std::size_t past,
                      std::size_t place) {
  if (place >= past) return call.x.row<float>(s.first + place - past);
  return s.before.empty() ? nullptr : s.before.row<float>(place);
}

void keep_inputs(const ConvolutionCall& call, const SequenceState& s, std::size_t past) {
  for (std::size_t i = 0; i < s.after.size(); ++i) {
    const std::size_t seen = s.tokens - s.after.size() + i + 1;
    for (std::size_t r = 0; r < past; ++r) {
      const float* in = input_of(call, s, past, seen + r);
      float* out = s.after[i].row<float>(r);
      in == nullptr ? std::fill_n(out, call.x.columns(), 0.0F) : std::copy_n(in, call.x.columns(), out);
    }
  }
}

}  // namespace

Matrix convolution(Ops& ops, const ConvolutionCall& call) {
  const Taps taps = taps_of(call, ops.arithmetic());
  Matrix y = ops.allocate(call.x.rows(), taps.channels);
  const auto row = HWY_DYNAMIC_DISPATCH(convolve_row);
  const std::size_t step = std::max<std::size_t>(1, kWorthAThread / taps.channels);
  for (const SequenceState& s : call.sequences) {
    team_for(ops.jobs(), (s.tokens + step - 1) / step, [&](std::size_t piece) {
      std::vector<const float*> inputs(taps.kernel);
      for (std::size_t t = piece * step; t < std::min(s.tokens, (piece + 1) * step); ++t) {
        for (std::size_t i = 0; i < taps.kernel; ++i) inputs[i] = input_of(call, s, taps.kernel - 1, t + i);
        row(inputs.data(), taps.w.data(), taps.bias.data(), taps.kernel, taps.channels, call.silu,
            y.row<float>(s.first + t));
      }
    });
    keep_inputs(call, s, taps.kernel - 1);
  }
  return y;
}

}  // namespace assay::cpu
#endif
