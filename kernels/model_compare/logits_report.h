// What two sides predict of a text, position by position: divergence, agreement, loss. Rows of logits are
// added up as they come, and need not be kept.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "refimpl/ops/interface.h"

namespace assay {

struct LogitsReport {
  std::size_t positions = 0;
  double kl_mean = 0, kl_max = 0;  // KL(reference ‖ test), nats
  std::size_t kl_max_at = 0;
  double same_first = 0;  // share of positions with the same likeliest token
  double top5_overlap = 0;
  // Of the text's own next tokens: nats a token, and the mean difference with its standard error.
  double loss_reference = 0, loss_test = 0, loss_difference = 0, standard_error = 0;
  double perplexity_difference() const;
};

class LogitsTally {
 public:
  // Of the next position: [vocabulary] each, and the token that follows, where one is counted.
  void add(std::span<const double> reference, std::span<const double> test, std::optional<TokenId> next);
  LogitsReport report() const;

 private:
  LogitsReport sums_;
  std::size_t foretold_ = 0, top_ = 0;
  double difference_squares_ = 0;
};

}  // namespace assay
