// Norms as classes compute them: RMS or LayerNorm, of a row or of each head of it, with the weights of a
// checkpoint, with 1 more than these, or with none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "refimpl/models/own_weight.h"
#include "refimpl/models/weights.h"
#include "refimpl/ops/interface.h"

namespace assay {

enum class NormKind : std::uint8_t { rms, layer };
struct NormRule {
  NormKind kind = NormKind::rms;
  NormForm form = NormForm::weight_last;  // of a LayerNorm one_plus_weight counts only
  double epsilon = 0;
};

class Norm {
 public:
  Norm() = default;  // x stays as it is
  // A weight of several rows has one for each head.
  Norm(const WeightView& weight, const WeightView& bias, const NormRule& rule);
  Norm(const std::vector<WeightView>& of_heads, const NormRule& rule);
  static Norm unweighted(std::size_t width, const NormRule& rule);
  // As many heads side by side, each of a length of its own, with their weights in one row (K2 Horizon).
  static Norm of_row(const WeightView& weight, std::size_t heads, const NormRule& rule);
  // RMS norms whose weights are stored less `offset`; absent where nothing is stored.
  static Norm with_offset(const WeightView& weight, double offset, const NormRule& rule);
  // Muse Spark: x · (1 + w) is rounded, and then normed without weights; absent where nothing is stored.
  static Norm of_scaled(const WeightView& weight, const NormRule& rule);

  explicit operator bool() const { return !parts_.empty(); }
  Matrix operator()(const Matrix& x, Ops& ops) const;

 private:
  struct Part {
    WeightView weight, bias;
  };
  void add(const WeightView& weight, const WeightView& bias);
  WeightView own(std::string name, std::vector<double> values);
  Matrix of_part(const Matrix& x, const Part& part, Ops& ops) const;

  NormRule rule_;
  std::vector<double> before_;  // x is scaled by these first, column by column; empty: not
  std::vector<Part> parts_;     // one, which groups of its width share, or one for each head
  std::vector<std::shared_ptr<const OwnWeight>> constants_;
};

}  // namespace assay
