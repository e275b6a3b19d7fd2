// softmax(s)ᵢ = exp(sᵢ - m) / Σⱼ exp(sⱼ - m), m = max s. Of nothing but -inf: all 0.
#pragma once

#include <span>

namespace assay {

// Three passes: the maximum, the exponentials and their sum, the division.
void softmax_three_pass(std::span<double> scores);

// One pass over scores, for Σᵢ softmax(s)ᵢ vᵢ (Milakov & Gimelshein 2018): whenever the maximum grows, what
// was summed so far shrinks by exp(old - new). take() returns by how much the values summed so far are to
// shrink, and leaves in `weight` what the new value counts.
class OnlineSoftmax {
 public:
  double take(double score, double& weight);
  double sum() const { return sum_; }  // Σ exp(sᵢ - m)
  double log_sum_exp() const;          // m + ln sum; -inf where nothing was seen

 private:
  double maximum_ = -1.0 / 0.0, sum_ = 0;
};

}  // namespace assay
