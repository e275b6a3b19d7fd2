// The families told by a table (data/fixtures/kin), and which of them ranks compute.
#pragma once

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/support/paths.h"

namespace assay::test {

inline std::filesystem::path kin_folder() {
  return source_dir() / "data/fixtures/kin";
}

// Heads of these are not cut over ranks, which is said by name; but mllama, of whose plan cross attention is a part that is not
// run, those whose layers are of their own making (refimpl/models/own_layers.h), and modernbert_decoder and OPT with narrow
// embeddings, whose heads have tensors that no cut is known of.
inline bool is_computed_over_ranks(const std::string& family) {
  static const std::set<std::string> kWhole = {"bailing_moe_linear",
                                               "bailing_moe_v2_5",
                                               "bitnet",
                                               "codegen",
                                               "diffllama",
                                               "doge",
                                               "falcon_rw",
                                               "hrm_text",
                                               "inkling_mm_model",
                                               "inkling_text",
                                               "jetmoe",
                                               "k2_horizon",
                                               "minimax",
                                               "mistral_large4",
                                               "mllama",
                                               "modernbert_decoder",
                                               "modernbert_decoder_unusual",
                                               "motif",
                                               "opt_behind",
                                               "phi3small",
                                               "qwen4_exp",
                                               "qwen4_exp_unusual",
                                               "recurrent_gemma",
                                               "rwkv",
                                               "rwkv7",
                                               "step1",
                                               "xlstm",
                                               "zamba",
                                               "zamba2",
                                               "zaya"};
  return !kWhole.contains(family);
}
// Layers that a token passes several times are no stages of a pipeline, nor what a hand-off knows.
inline bool is_computed_in_stages(const std::string& family) {
  return family != "iquestloopcoder" && family != "nanbeige";
}

inline std::vector<std::string> kin_families() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kin_folder()))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}
inline std::vector<std::string> kin_families_over_ranks() {
  std::vector<std::string> names = kin_families();
  std::erase_if(names, [](const std::string& name) { return !is_computed_over_ranks(name); });
  return names;
}
inline std::vector<std::string> kin_families_in_stages() {
  std::vector<std::string> names = kin_families_over_ranks();
  std::erase_if(names, [](const std::string& name) { return !is_computed_in_stages(name); });
  return names;
}

}  // namespace assay::test
