// y[t, c] = act(Σᵢ w[c, i] · x[t - kernel + 1 + i, c] + b[c]): a causal convolution of each channel by itself. Inputs
// before the sequence are 0; those of earlier steps are its state. Under bf16 the sum is rounded before the activation.
#include <fmt/format.h>

#include "core/system/error.h"
#include "core/system/threads.h"
#include "refimpl/ops/recurrence.h"
#include "refimpl/ops/reference.h"

namespace assay {
namespace {

// The inputs of one sequence by their place: 0 is the oldest of the state.
template <class T>
class PastInputs {
 public:
  PastInputs(const ConvolutionCall& call, const SequenceState& sequence, std::size_t past)
      : x_(call.x), sequence_(sequence), past_(past) {}
  const T* row(std::size_t place) const {
    if (place >= past_) return x_.row<T>(sequence_.first + place - past_);
    return sequence_.before.empty() ? nullptr : sequence_.before.row<T>(place);
  }
  void store(std::size_t place, T* out) const {
    const T* in = row(place);
    in == nullptr ? std::fill_n(out, x_.columns(), T(0)) : std::copy_n(in, x_.columns(), out);
  }

 private:
  const Matrix& x_;
  const SequenceState& sequence_;
  std::size_t past_;
};

template <class T>
void convolve(const ConvolutionCall& call, const SequenceState& sequence, const Arithmetic& arithmetic,
              const std::vector<double>& w, const std::vector<double>& bias, const Matrix& y) {
  const std::size_t channels = call.x.columns(), kernel = w.size() / channels;
  const PastInputs<T> inputs(call, sequence, kernel - 1);
  for (std::size_t t = 0; t < sequence.tokens; ++t) {
    std::vector<double> sum = bias.empty() ? std::vector<double>(channels) : bias;
    for (std::size_t i = 0; i < kernel; ++i) {
      const T* in = inputs.row(t + i);
      for (std::size_t c = 0; in != nullptr && c < channels; ++c) sum[c] += w[c * kernel + i] * in[c];
    }
    T* out = y.row<T>(sequence.first + t);
    for (std::size_t c = 0; c < channels; ++c) {
      const double z = call.silu ? arithmetic.stage(sum[c]) : sum[c];
      out[c] = static_cast<T>(arithmetic.round(call.silu ? z * logistic(z) : z));
    }
  }
  for (std::size_t i = 0; i < sequence.after.size(); ++i) {
    const std::size_t seen = sequence.tokens - sequence.after.size() + i + 1;
    for (std::size_t r = 0; r + 1 < kernel; ++r) inputs.store(seen + r, sequence.after[i].template row<T>(r));
  }
}

}  // namespace

void check_shapes(const ConvolutionCall& call, const std::vector<double>& weight,
                  const std::vector<double>& bias) {
  const std::size_t channels = call.x.columns();
  if (channels == 0 || weight.empty() || weight.size() % channels != 0 ||
      (!bias.empty() && bias.size() != channels))
    throw Error::input(
        fmt::format("a convolution's {} weights are not of {} channels", weight.size(), channels))
        .tensor(*call.weight.name);
  check_states("convolution", call.sequences, call.x.rows(), weight.size() / channels - 1, channels);
}

Matrix ReferenceOps::run(const ConvolutionCall& call) {
  const std::vector<double> w = vector_of(call.weight, arithmetic()),
                            bias = vector_of(call.bias, arithmetic());
  check_shapes(call, w, bias);
  Matrix y = allocate(call.x.rows(), call.x.columns());
  with_elements(y.real(), [&](auto element) {
    parallel_for(jobs(), call.sequences.size(), [&](std::size_t i) {
      convolve<decltype(element)>(call, call.sequences[i], arithmetic(), w, bias, y);
    });
  });
  return y;
}

}  // namespace assay
