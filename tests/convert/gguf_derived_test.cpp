// GGUFs of an architecture that nobody has described: the tree that is derived of their names and shapes, against the one
// that describes the model they were made of (whose counts are transformers').
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/formats/gguf_write.h"
#include "core/model/derive_tree.h"
#include "core/model/open_model.h"
#include "tests/convert/convert_support.h"
#include "tests/support/made_families.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

using test::assay;
using test::expect_ok;
using test::TempDir;

std::vector<std::string> models() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(test::source_dir() / "data/fixtures/gguf_families"))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

// The file with its architecture, and the keys that begin with it, under a name that nobody knows.
void rename_architecture(const fs::path& file) {
  const std::string bytes = test::read_file(file);
  gguf::Header header =
      gguf::parse_header(std::as_bytes(std::span(bytes.data(), bytes.size())), bytes.size(), file);
  const std::string known = std::string(header.text("general.architecture").value()) + ".";
  for (gguf::KeyValue& key : header.metadata)
    if (key.key.starts_with(known)) key.key = "unheard-of." + key.key.substr(known.size());
  gguf::set_value(header.metadata, gguf::text_value("general.architecture", "unheard-of"));
  test::write_file(file, gguf::serialize_header(header.metadata, header.tensors, header.alignment) +
                             bytes.substr(header.data_offset));
}

std::uint64_t cached_a_token(const ModuleTree& tree) {
  std::uint64_t values = 0;
  for (const AttentionGeometry& g : tree.attention)
    if (g.cached)
      values += g.layers.size() * (g.kind == AttentionGeometry::Kind::latent
                                       ? g.kv_lora_rank + g.rope_head_dim
                                       : g.kv_heads * (g.qk_head_dim + g.v_head_dim));
  return values;
}

// Files that hold other values than the checkpoint: Apertus's and Kimi K3's have some as keys, Gemma 3n's embedding more
// rows, Muse Glimmer's heads get norms.
const std::set<std::string> kOtherValues = {"apertus",      "gemma3n",       "kimi_k3",
                                            "kimi_k3-lora", "kimi_k3-mxfp4", "muse_glimmer"};
// Layers that a text passes several times, that share a cache, or whose keys have names of their own.
const std::set<std::string> kOtherCaches = {"deepseek_v4", "deepseek_v4-fp4", "dots3_note",
                                            "gemma3n",     "hrm_text",        "nanbeige"};

class GgufDerived : public testing::TestWithParam<std::string> {};

TEST_P(GgufDerived, HoldsWhatTheModelHolds) {
  const TempDir dir;
  const fs::path file = dir / "model.gguf";
  test::make_family_model(GetParam(), dir / "model");
  expect_ok(assay({"convert", dir / "model", file, "--to", "gguf:f32", "--tokenizer-pre", "none"}));
  rename_architecture(file);
  const auto counted = assay({"paramcount", file, "--format", "json"});
  // HRM's block_count is that of its passes, of which one who does not know them finds too few layers.
  ASSERT_EQ(counted.exit_code, GetParam() == "hrm_text" ? 1 : 0) << counted.out << counted.err;
  const auto answer = nlohmann::json::parse(counted.out);
  EXPECT_EQ(answer.at("checkpoint").at("difference"), 0) << counted.out;
  const ModuleTree described = describe(ModelConfig::read(dir / "model/config.json"));
  const Checkpoint checkpoint = open_checkpoint(file, 1);
  const ModelConfig config = read_config(checkpoint);
  ASSERT_FALSE(is_described(config));
  const ModuleTree tree = derive_tree(checkpoint, config);
  const Totals is = count(tree), should = count(described);
  EXPECT_EQ(is.total == should.total, !kOtherValues.contains(GetParam())) << is.total << " " << should.total;
  EXPECT_EQ(should.total - should.active, is.total - is.active);  // experts that a token does not meet
  EXPECT_EQ(is.mtp_own == should.mtp_own || is.mtp_own == 0, true) << is.mtp_own << " " << should.mtp_own;
  if (GetParam() != "hrm_text") {
    EXPECT_EQ(tree.layers, described.layers);
  }
  EXPECT_EQ(tree.experts, described.experts);
  EXPECT_EQ(tree.vocabulary, described.vocabulary);
  EXPECT_EQ(tree.tied_embeddings, described.tied_embeddings);
  EXPECT_EQ(answer.at("memory").at("kv").at("bytes_per_token").is_null(), tree.attention.empty());
  EXPECT_EQ(cached_a_token(tree) == cached_a_token(described), !kOtherCaches.contains(GetParam()))
      << cached_a_token(tree) << " " << cached_a_token(described);
}

INSTANTIATE_TEST_SUITE_P(Families, GgufDerived, testing::ValuesIn(models()), [](const auto& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace assay
