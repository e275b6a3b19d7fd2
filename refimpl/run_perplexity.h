// How well a model foretells a text: perplexity, and how far its predictions are from another model's.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "refimpl/run_model.h"

namespace assay {

struct TextLoss {
  std::size_t tokens = 0;       // predicted
  double nats = 0;              // Σ -ln p(token)
  double divergence = 0;        // Σ KL(other ‖ model), nats
  std::size_t same_choice = 0;  // positions where both models would choose the same token
  bool against = false;
  double mean() const { return nats / static_cast<double>(tokens); }
  double perplexity() const;
};

// The file's tokens in windows of the model's context, each begun with what the tokenizer begins texts with;
// or, by paragraph, each paragraph (blank lines between) alone as BOS, text, EOS. `other` may be null.
TextLoss measure_loss(OpenModel& model, OpenModel* other, const std::string& file, bool by_paragraph);

double log_sum_exp(std::span<const double> logits);

}  // namespace assay
