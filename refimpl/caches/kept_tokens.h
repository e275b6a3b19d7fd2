// Which tokens each key head of a layer keeps. All heads keep as many; of each they lie in the order of the text.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "refimpl/step/cache_policy.h"

namespace assay {

class KeptTokens {
 public:
  explicit KeptTokens(const CacheWidth& width);

  std::size_t rows() const { return kept_.front().size(); }
  std::size_t tokens() const { return tokens_; }  // read so far
  const std::vector<std::vector<std::size_t>>& places() const { return kept_; }
  void append(std::size_t count);  // the next tokens of the text, behind the others

  // Of each head the rows that stay, ascending: moved together to the front.
  void keep(const CacheRows& rows, const std::vector<std::vector<std::size_t>>& stay);
  double bytes() const;

 private:
  std::size_t key_dim_, value_dim_, columns_;
  std::size_t tokens_ = 0;
  std::vector<std::vector<std::size_t>> kept_;
};

// The numbers of the `count` largest scores, ascending; of equal ones the earlier are taken.
std::vector<std::size_t> largest_of(std::span<const double> scores, std::size_t count);

}  // namespace assay
