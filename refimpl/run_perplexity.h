// How well a model predicts a text: perplexity, and how far its predictions are from another model's.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "refimpl/run_model.h"
#include "refimpl/run_windows.h"

namespace assay {

struct TextLoss {
  std::size_t tokens = 0;       // predicted
  double nats = 0;              // Σ -ln p(token)
  double divergence = 0;        // Σ KL(other ‖ model), nats
  std::size_t same_choice = 0;  // positions where both models would choose the same token
  bool against = false;
  std::size_t windows = 0, context = 0;  // read, and how long they may be
  double mean() const { return nats / static_cast<double>(tokens); }
  double perplexity() const;
};

// The file's tokens in windows (a context of 0: the model's). Logits are reduced as they come, so that what
// is in memory does not grow with the text. `other` may be null.
TextLoss measure_loss(OpenModel& model, OpenModel* other, const std::string& file, WindowRule rule = {});

double log_sum_exp(std::span<const double> logits);

}  // namespace assay
