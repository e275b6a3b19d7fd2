#include "refimpl/models/rope_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/system/error.h"

namespace assay {
namespace {

constexpr double kLargestContext = 1e12;

// A row of cos and sin a place.
class AngleTable {
 public:
  explicit AngleTable(const RopeRule& rule) : pairs_(rule.rotary_dim / 2) {}
  void add(std::size_t place, const RopeFrequencies& frequencies) {
    for (std::size_t i = 0; i < pairs_; ++i) {
      const double angle = static_cast<double>(place) * frequencies.inverse[i];
      cos_.push_back(std::cos(angle) * frequencies.scale);
      sin_.push_back(std::sin(angle) * frequencies.scale);
    }
    ++rows_;
  }
  RopeAngles upload(Ops& ops) const {
    return {ops.upload(cos_, rows_, pairs_), ops.upload(sin_, rows_, pairs_)};
  }

 private:
  std::size_t pairs_, rows_ = 0;
  std::vector<double> cos_, sin_;
};

std::vector<double> stored_factors(const Weights& weights, std::string_view name, std::size_t pairs) {
  const WeightView view = weights.find_named(name);
  if (!view) return {};
  std::vector<double> factors = decode_vector(view);
  if (factors.size() != pairs)
    throw Error::input(fmt::format("holds {} factors for {} pairs", factors.size(), pairs)).tensor(name);
  return factors;
}

}  // namespace

RopeRule with_stored_factors(RopeRule rule, const Weights& weights) {
  if (!weights.from_gguf()) return rule;
  const std::size_t pairs = rule.rotary_dim / 2;
  rule.long_factor = stored_factors(weights, "rope_factors_long.weight", pairs);
  rule.short_factor = stored_factors(weights, "rope_factors_short.weight", pairs);
  if (!rule.long_factor.empty() && !rule.short_factor.empty()) {
    rule.type = RopeRule::Type::longrope;
    return rule;
  }
  rule.long_factor = rule.short_factor = stored_factors(weights, "rope_freqs.weight", pairs);
  if (!rule.long_factor.empty()) {
    rule.type = RopeRule::Type::longrope;
    rule.attention_factor = 1;
  } else if (rule.type == RopeRule::Type::longrope) {
    throw Error::input(fmt::format("rope short_factor is not a list of {} factors", pairs))
        .in(weights.config().source());
  }
  return rule;
}

std::size_t stretched_context(const RopeRule& rule) {
  if (rule.type != RopeRule::Type::dynamic && rule.type != RopeRule::Type::yarn) return rule.context;
  const double reach = static_cast<double>(rule.original_context) * rule.factor;
  return std::max(rule.context, static_cast<std::size_t>(std::min(reach, kLargestContext)));
}

bool same_frequencies(const RopeRule& rule, std::size_t length, std::size_t other) {
  if (rule.type == RopeRule::Type::dynamic)
    return std::max(length, rule.context) == std::max(other, rule.context);
  if (rule.type == RopeRule::Type::longrope)
    return (length > rule.original_context) == (other > rule.original_context) ||
           rule.short_factor == rule.long_factor;
  return true;
}

RopeAngles rope_angles(const RopeRule& rule, const Batch& batch, Ops& ops, std::span<const double> stretch) {
  AngleTable table(rule);
  const auto frequencies_for = [&](std::size_t length) {
    RopeFrequencies frequencies = rope_frequencies(rule, length);
    for (std::size_t i = 0; i < stretch.size(); ++i) frequencies.inverse.at(i) *= stretch[i];
    return frequencies;
  };
  for (const Batch::Sequence& sequence : batch.sequences) {
    const RopeFrequencies frequencies = frequencies_for(sequence.cache->length() + sequence.count);
    for (std::size_t t = sequence.first; t < sequence.first + sequence.count; ++t)
      table.add(batch.positions[t], frequencies);
  }
  RopeAngles angles = table.upload(ops);
  for (const Batch::Sequence& sequence : batch.sequences) {
    if (!sequence.cache->renumbers()) continue;
    const std::size_t rows = sequence.cache->next_place() + sequence.count;
    const RopeFrequencies frequencies = frequencies_for(rows);
    AngleTable own(rule);
    for (std::size_t row = 0; row < rows; ++row) own.add(row, frequencies);
    angles.of_rows.resize(batch.sequences.size());
    angles.of_rows.at(static_cast<std::size_t>(&sequence - batch.sequences.data())) = own.upload(ops);
  }
  return angles;
}

RopeAngles angles_at(const RopeRule& rule, std::span<const std::size_t> places, std::size_t length,
                     Ops& ops) {
  AngleTable table(rule);
  const RopeFrequencies frequencies = rope_frequencies(rule, length);
  for (const std::size_t place : places) table.add(place, frequencies);
  return table.upload(ops);
}

RopeAngles turned_back(RopeAngles angles, Ops& ops) {
  if (angles.sin.empty()) return angles;
  angles.sin = ops.multiply(angles.sin, -1);
  for (RopeAngles& of_rows : angles.of_rows) of_rows = turned_back(std::move(of_rows), ops);
  return angles;
}

Matrix temperatures(const Hyperparameters::Temperature& rule, const Batch& batch, Ops& ops) {
  std::vector<double> factors;
  for (const auto position : batch.positions)
    factors.push_back(
        1 + rule.scale * std::log1p(std::floor((static_cast<double>(position) + rule.offset) / rule.floor)));
  return ops.upload(factors, factors.size(), 1);
}

}  // namespace assay
