// A model of data/models over ranks that are threads.
#pragma once

#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "core/model/rank_weights.h"
#include "refimpl/models/model.h"
#include "refimpl/ranks/rank_run.h"
#include "tests/support/paths.h"

namespace assay::test {

inline std::filesystem::path model_folder(const std::string& name) {
  return source_dir() / "data/models" / name;
}

// Of different lengths and beginnings.
inline std::vector<std::vector<TokenId>> rank_texts(std::size_t count) {
  std::vector<std::vector<TokenId>> texts;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<TokenId>& text = texts.emplace_back();
    for (std::size_t k = 0; k < 7 + i; ++k) text.push_back(static_cast<TokenId>((11 * k + 29 * i + 5) % 37));
  }
  return texts;
}

inline RankRunRequest rank_request(const std::string& model, Precision precision, const RankGrid& grid,
                                   std::size_t texts) {
  RankRunRequest request;
  request.path = model_folder(model);
  request.settings.arithmetic = {precision};
  request.settings.grid = grid;
  request.texts = rank_texts(texts);
  request.decode = 3;
  return request;
}
inline RankRun ranked(const std::string& model, Precision precision, const RankGrid& grid,
                      std::size_t texts) {
  return run_ranks(rank_request(model, precision, grid, texts));
}

// What a plan says each rank holds.
inline std::vector<std::uint64_t> planned_bytes(const Weights& weights, const RankGrid& grid) {
  WeightFormat format = configured_format(weights.config());
  const WeightView embedding = weights.get({.role = Role::token_embedding});
  if (format.kind == WeightFormat::Kind::plain) format.plain_bytes = info(embedding.type).block_bytes;
  const bool has_mtp = make_model(weights, {})->draft_layers() > 0;
  std::vector<std::uint64_t> bytes;
  for (const RankWeights& rank : rank_weights(weights.tree(), grid, format, has_mtp))
    bytes.push_back(rank.bytes);
  return bytes;
}

// Empty: it can be cut so.
inline std::string refused(const std::string& model, const RankGrid& grid) {
  const Weights weights(model_folder(model), 1);
  const auto refusals = refusals_to_run(weights.tree(), grid);
  return refusals.empty() ? "" : refusals.front();
}

inline std::string test_name(const testing::TestParamInfo<const char*>& info) {
  return std::regex_replace(std::string(info.param), std::regex("-"), "_");
}

}  // namespace assay::test
