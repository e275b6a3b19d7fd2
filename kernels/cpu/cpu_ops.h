// The operations on the CPU's vectors: those below are kernels of kernels/cpu, all others the reference's,
// which are made of these where they multiply matrices (latent attention, mixtures of experts).
//
// The kernels compute in float32; under arithmetics of bfloat16 linear and attention do, whose results are
// then rounded. All else is the reference's.
#pragma once

#include "refimpl/ops/reference.h"

namespace assay {

class CpuOps : public ReferenceOps {
 public:
  CpuOps(const Arithmetic& arithmetic, int jobs) : ReferenceOps(arithmetic, jobs) {}

  Matrix linear(const Matrix& x, const WeightView& weight, const WeightView& bias,
                ResultRounding rounding) override;
  Matrix rms_norm(const Matrix& x, const WeightView& weight, double epsilon, NormForm form) override;
  void rope(Matrix& x, const RopeCall& call) override;
  Matrix attention(const AttentionCall& call) override;
  Matrix gated(const Matrix& gate, const Matrix& up, const GatedForm& form) override;
  Matrix add(const Matrix& a, const Matrix& b) override;

 private:
  bool is_float32() const { return arithmetic().float32(); }
};

}  // namespace assay
