#include "refimpl/models/ngram_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/model/primes.h"
#include "core/system/error.h"
#include "refimpl/ops/as_it_is.h"

namespace assay {
namespace {

constexpr std::uint64_t kGamma = 0x9E3779B97F4A7C15, kOfLayer = 10007;

std::uint64_t split_mix(std::uint64_t x) {
  x += kGamma;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// Odd, and so small that a token's product with it stays below 2^63.
std::vector<std::uint64_t> multipliers(const NgramForm& form, std::size_t vocabulary, std::size_t number) {
  const std::uint64_t most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) /
                             std::max<std::uint64_t>(vocabulary, 1);
  const std::uint64_t half = std::max<std::uint64_t>(1, most / 2), seed = form.seed + kOfLayer * number;
  std::vector<std::uint64_t> made;
  for (std::size_t i = 0; i < form.size; ++i)
    made.push_back(2 * (split_mix(seed + kGamma * (i + 1)) % half) + 1);
  return made;
}

// Taps of a filter `step` inputs apart, as one over all inputs between them.
OwnWeight spread(const WeightView& filter, std::size_t step) {
  const std::size_t kernel = filter.columns, all = (kernel - 1) * step + 1;
  OwnWeight wide(*filter.name, {});
  wide.rows = filter.rows, wide.columns = all;
  wide.values.resize(filter.rows * all);
  for (std::size_t c = 0; c < filter.rows; ++c) {
    const std::vector<double> taps = decode_vector(filter.row_range(c, 1));
    for (std::size_t i = 0; i < kernel; ++i) wide.values[c * all + i * step] = taps.at(i);
  }
  return wide;
}

// Checkpoints hold these numbers, too: those of another seed would look up other rows.
void require_stored(const WeightView& stored, const std::vector<std::uint64_t>& made) {
  if (!stored || stored.type != ElementType::I64 || stored.codes == nullptr) return;
  std::vector<std::int64_t> numbers(stored.rows * stored.columns);
  std::memcpy(numbers.data(), stored.codes, numbers.size() * sizeof(std::int64_t));
  if (!std::equal(numbers.begin(), numbers.end(), made.begin(), made.end(),
                  [](std::int64_t a, std::uint64_t b) { return static_cast<std::uint64_t>(a) == b; }))
    throw Error::input("holds other numbers than config.json's seed and sizes make").tensor(*stored.name);
}

// tokens: the past ones, oldest first, then this one. Those from here on backwards, cut off at the end of a text.
std::vector<std::uint64_t> seen_backwards(std::span<const double> tokens, TokenId end) {
  std::vector<std::uint64_t> seen = {static_cast<std::uint64_t>(tokens.back())};
  bool cut = false;
  for (std::size_t i = tokens.size() - 1; i-- > 0;) {
    const auto token = static_cast<std::uint64_t>(tokens[i]);
    cut = cut || token == static_cast<std::uint64_t>(end);
    seen.push_back(cut ? static_cast<std::uint64_t>(end) : token);
  }
  return seen;
}

}  // namespace

std::optional<NgramBlock> NgramBlock::find(const Weights& weights, std::size_t layer, std::size_t number,
                                           std::size_t streams, const NgramForm& form, const NormRule& rule) {
  const auto part = [&](std::size_t i) {
    return weights.find({.role = Role::position_embedding,
                         .part = Part::embedding,
                         .layer = layer,
                         .half = static_cast<int>(i)});
  };
  if (!part(0)) return std::nullopt;
  NgramBlock block;
  block.form_ = form;
  block.streams_ = streams;
  while (const WeightView rows = part(block.parts_.size())) block.parts_.push_back(rows);
  block.rows_a_part_ = block.parts_.front().rows;
  block.multipliers_ = multipliers(form, weights.tree().vocabulary, number);
  const std::size_t heads = (form.size - 1) * form.heads_each;
  std::uint64_t prime = form.base - 1, first = 0;
  for (std::size_t i = 0; i < (number + 1) * heads; ++i) {
    prime = next_prime(prime);
    if (i < number * heads) continue;
    block.heads_.push_back({prime, first});
    first += prime;
  }
  block.require_tables(weights);
  const auto get = [&](Part of, int half) {
    return weights.get({.role = Role::per_layer_embedding, .part = of, .layer = layer, .half = half});
  };
  block.key_ = get(Part::dense_mlp, 0);
  block.value_ = get(Part::dense_mlp, 1);
  block.norm_key_ = Norm::of_row(get(Part::norm, 0), streams, rule);
  block.norm_query_ = Norm::of_row(get(Part::norm, 1), streams, rule);
  block.norm_conv_ = Norm::of_row(get(Part::norm, 2), streams, rule);
  block.dilated_ = std::make_shared<const OwnWeight>(
      spread(weights.get({.role = Role::convolution, .part = Part::dense_mlp, .layer = layer}), form.size));
  return block;
}

void NgramBlock::require_tables(const Weights& weights) const {
  const std::string& part = *parts_.front().name;
  const std::string path = part.substr(0, part.rfind("ngram_embedding."));
  std::vector<std::uint64_t> rows, firsts;
  for (const Head& head : heads_) rows.push_back(head.rows), firsts.push_back(head.first);
  require_stored(weights.find_named(path + "layer_multipliers"), multipliers_);
  require_stored(weights.find_named(path + "ngram_heads_vocab_sizes"), rows);
  require_stored(weights.find_named(path + "ngram_heads_offsets"), firsts);
}

std::vector<StateShape> NgramBlock::states() const {
  return {{form_.size - 1, 1}, {dilated_->columns - 1, dilated_->rows}};
}

void NgramBlock::add_row(std::uint64_t row, std::vector<double>& to) const {
  const WeightView& part = parts_.at(row / rows_a_part_);
  const std::vector<double> numbers = decode_vector(part.row_range(row % rows_a_part_, 1));
  to.insert(to.end(), numbers.begin(), numbers.end());
}

void NgramBlock::add_rows(const std::vector<std::uint64_t>& tokens, std::vector<double>& to) const {
  std::uint64_t mixed = tokens[0] * multipliers_[0];
  for (std::size_t n = 2; n <= form_.size; ++n) {
    mixed ^= tokens[n - 1] * multipliers_[n - 1];
    for (std::size_t i = 0; i < form_.heads_each; ++i) {
      const Head& head = heads_[(n - 2) * form_.heads_each + i];
      add_row(head.first + mixed % head.rows, to);
    }
  }
}

// [tokens, width]; and the last tokens behind each of the step's.
Matrix NgramBlock::embedded(std::size_t layer, std::size_t part, const Batch& batch, Ops& ops) const {
  const std::size_t past = form_.size - 1;
  std::vector<double> rows;
  for (const Batch::Sequence& s : batch.sequences) {
    SequenceState state = s.cache->state(layer, part, s.first, s.count);
    std::vector<double> tokens = state.before.empty()
                                     ? std::vector<double>(past, static_cast<double>(form_.end))
                                     : ops.download(state.before);
    for (std::size_t t = s.first; t < s.first + s.count; ++t) {
      tokens.push_back(static_cast<double>(batch.tokens[t]));
      add_rows(seen_backwards(std::span(tokens).last(form_.size), form_.end), rows);
    }
    const std::size_t kept = state.after.size();
    for (std::size_t i = 0; i < kept; ++i) {
      const std::size_t end = past + s.count - (kept - 1 - i);
      const Matrix last = as_it_is(ops, std::span(tokens).subspan(end - past, past), past, 1);
      ops.store({.base = state.after[i]}, 0, last);
    }
  }
  return ops.upload(rows, batch.tokens.size(), rows.size() / batch.tokens.size());
}

Matrix NgramBlock::forward(const Matrix& streams, std::size_t layer, std::size_t part, const Batch& batch,
                           Ops& ops, const TapScope& at) const {
  const Matrix e = embedded(layer, part, batch, ops);
  at("ngram_rows", e);
  const std::vector<double> key = ops.download(norm_key_(ops.linear(e, key_), ops));
  const std::vector<double> query = ops.download(norm_query_(streams, ops));
  const std::size_t width = streams.columns() / streams_, tokens = streams.rows();
  std::vector<double> gates(tokens * streams_);
  for (std::size_t i = 0; i < key.size(); ++i) gates[i / width] += key[i] * query[i];
  for (double& gate : gates) {
    gate /= std::sqrt(static_cast<double>(width));
    const double root = std::sqrt(std::max(std::abs(gate), 1e-6));
    gate = gate == 0 ? 0 : std::copysign(root, gate);
  }
  Matrix all = ops.linear(e, value_);  // [tokens, width]
  const Matrix one = all;
  for (std::size_t i = 1; i < streams_; ++i) all = ops.concatenate(all, one);
  const Matrix given = ops.output_gate(all, ops.upload(gates, tokens, streams_));
  CausalConvolution convolution;
  convolution.weight = dilated_->view();
  convolution.channels = dilated_->rows, convolution.kernel = dilated_->columns;
  const Matrix local = convolution(norm_conv_(given, ops), layer, part + 1, true, batch, ops);
  const Matrix added = ops.add(given, local);
  at("ngrams", added);
  return ops.add(streams, added);
}

}  // namespace assay
