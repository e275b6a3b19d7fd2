// Rotary position embedding (Su et al. 2021): the pair (a, b) of a head rotates by its position's angle φ,
//
//   a' = a cos φ - b sin φ,   b' = b cos φ + a sin φ
//
// half_split: pair i is elements (i, i + d/2), as transformers has it; interleaved: (2i, 2i + 1), as Meta's
// and DeepSeek's code and llama.cpp's "norm" type have it. Under bf16 each product is rounded, then the sum.
#include "refimpl/ops/reference.h"
#include "refimpl/ops/support.h"

namespace assay {

Matrix ReferenceOps::run(const RotaryCall& rotary) {
  const Matrix& x = rotary.x;
  const RopeCall& call = rotary.angles;
  check_angles(rotary);
  const std::size_t pairs = call.cos.columns();
  const bool halves = call.layout == RopeLayout::half_split;
  const auto product = [&](double a, double b) { return arithmetic().stage(a * b); };
  with_elements(x.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t t = 0; t < x.rows(); ++t) {
      const T *cos = call.cos.row<T>(t), *sin = call.sin.row<T>(t);
      for (std::size_t h = 0; h < call.heads; ++h) {
        T* head = x.row<T>(t) + h * call.head_dim + call.offset;
        for (std::size_t i = 0; i < pairs; ++i) {
          T& first = head[halves ? i : 2 * i];
          T& second = head[halves ? i + pairs : 2 * i + 1];
          const double a = first, b = second;
          first = static_cast<T>(arithmetic().round(product(a, cos[i]) - product(b, sin[i])));
          second = static_cast<T>(arithmetic().round(product(b, cos[i]) + product(a, sin[i])));
        }
      }
    }
  });
  return x;
}

}  // namespace assay
