// A model's golden record: what a trusted copy of it is, small enough to keep beside 600 GB of weights.
//
//   {"schema": "assay.golden/1",
//    "config": {…},                                                config.json, key by key
//    "tensors": {"NAME": {"type", "shape", "sha256"}},             of the stored bytes
//    "behaviour": {"tokens": […], "logits": [[id, logit], …]}}     after the last token; any of it may be
//    absent
//
// A manifest says that a file is wrong; a record says which tensor is, and often how: exchanged with another,
// stored transposed, computed with another rope_theta.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/check/stages.h"
#include "core/formats/json.h"
#include "refimpl/ops/interface.h"

namespace assay {

inline constexpr std::string_view kGoldenName = "assay-golden.json";

struct Golden {
  std::filesystem::path source;
  ParsedJson config;                            // null: not recorded
  std::map<std::string, TensorDigest> tensors;  // empty: not recorded
  std::vector<TokenId> tokens;                  // empty: not recorded
  std::vector<std::pair<TokenId, double>> logits;
};

// Throws Error::input where it is no record.
Golden read_golden(const std::filesystem::path& file);
// The record named, else the one beside the weights; nullopt: there is none.
std::optional<Golden> find_golden(const CheckSettings& settings);
// Config and tensors; the behaviour is compared where it is computed (check/behaviour).
Stage examine_golden(const CheckSettings& settings, const Golden& golden,
                     const std::vector<TensorDigest>& digests);
void write_golden(const std::filesystem::path& file, const CheckSettings& settings,
                  const std::vector<TensorDigest>& digests, const std::vector<TokenId>& tokens,
                  std::span<const double> logits);

// Where two configs differ, key by key ("rope_scaling.factor: 40, not 4"); what has no say in a computation
// (names, versions) is left out.
std::vector<std::string> config_differences(const ParsedJson& here, const ParsedJson& there);
ParsedJson read_config_document(const std::string& path, int jobs);  // null: there is none

}  // namespace assay
