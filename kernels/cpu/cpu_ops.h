// The operations on the CPU's vectors: those below are kernels of kernels/cpu, all others the reference's,
// which are made of these where they multiply matrices (latent attention, mixtures of experts).
//
// The kernels compute in float32. Under arithmetics of bfloat16 the results of linear and attention are then rounded,
// and norms, rotations, gates and sums round between their stages where the reference does.
#pragma once

#include "kernels/cpu/linear_work.h"
#include "refimpl/ops/reference.h"

namespace assay {

class CpuOps : public ReferenceOps {
 public:
  CpuOps(const Arithmetic& arithmetic, int jobs) : ReferenceOps(arithmetic, jobs) {}
  // Results lie in the memory of `owner`, whose arithmetic and jobs() hold.
  explicit CpuOps(Ops& owner, cpu::SumOrder order = cpu::SumOrder::fastest)
      : ReferenceOps(owner.arithmetic(), owner.jobs()), owner_(&owner), order_(order) {}

  Matrix allocate(std::size_t rows, std::size_t columns) override {
    return owner_ != nullptr ? owner_->allocate(rows, columns) : ReferenceOps::allocate(rows, columns);
  }
  using ReferenceOps::run;
  Matrix run(const LinearCall& call) override;
  Matrix run(const RmsNormCall& call) override;
  Matrix run(const RotaryCall& call) override;
  Matrix run(const AttentionCall& call) override;
  Matrix run(const GatedActivationCall& call) override;
  Matrix add(const Matrix& a, const Matrix& b) override;
  std::vector<Matrix> run_together(std::span<const LinearCall> calls) override;

 private:
  // What is stored of results is float32, or bfloat16 numbers in it.
  bool is_narrow() const { return arithmetic().storage() == Real::f32; }
  bool bf16() const { return arithmetic().bfloat16(); }
  Ops* owner_ = nullptr;
  cpu::SumOrder order_ = cpu::SumOrder::fastest;
};

}  // namespace assay
