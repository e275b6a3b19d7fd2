// Inkling under the names that are published, gates and ups row by row, says to the bit what the same weights say as
// transformers saves its text model.
#include <map>
#include <utility>

#include "tests/refimpl/models/golden_run.h"
#include "tests/refimpl/models/kin_families.h"
#include "tests/refimpl/models/made_weights.h"

namespace assay {
namespace {

using nlohmann::json;

// From what is published to what is saved; of gates and ups the first half.
constexpr std::pair<std::string_view, std::string_view> kSaved[] = {
    {"model.llm.embed_norm", "model.embed_tokens.embed_norm"},
    {"model.llm.embed", "model.embed_tokens"},
    {"model.llm.unembed", "lm_head"},
    {"model.llm.", "model."},
    {"attn_norm", "input_layernorm"},
    {"mlp_norm", "post_attention_layernorm"},
    {"sconv.", "sconv.conv1d."},
    {".attn.", ".self_attn."},
    {"wq_du", "q_proj"},
    {"wk_dv", "k_proj"},
    {"wv_dv", "v_proj"},
    {"wo_ud", "o_proj"},
    {"wr_du", "r_proj"},
    {"mlp.gate.bias", "mlp.gate.e_score_correction_bias"},
    {"shared_w13_weight", "gate_proj"},
    {"shared_w2_weight", "down_proj"},
    {"experts.w13_weight", "experts.gate_up_proj"},
    {"experts.w2_weight", "experts.down_proj"},
    {"w13_dn", "gate_proj"},
    {"w2_md", "down_proj"}};

std::string saved_name(std::string name) {
  for (const auto& [from, to] : kSaved) {
    if (const std::size_t at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
  }
  return name;
}

// Of each matrix of a stack the rows `first`, `first` + 2 …
std::vector<double> every_second_row(const std::vector<double>& values, std::size_t columns,
                                     std::size_t first) {
  std::vector<double> rows;
  for (std::size_t at = first * columns; at < values.size(); at += 2 * columns)
    rows.insert(rows.end(), values.begin() + static_cast<std::ptrdiff_t>(at),
                values.begin() + static_cast<std::ptrdiff_t>(at + columns));
  return rows;
}

// The weights that are published, as the text model is saved.
std::map<std::string, std::vector<double>> saved_weights(const ModuleTree& published) {
  std::map<std::string, std::vector<double>> saved;
  for_each_tensor(published, [&](const std::string& name, const TensorSpec& spec, const TensorIndices&) {
    const std::vector<double> values = test::made_weight(name, spec.shape);
    const std::size_t columns = spec.shape.back();
    const std::string ours = saved_name(name);
    if (spec.role != Role::mlp_gate_up) {
      saved[ours] = values;
    } else if (spec.part != Part::routed_expert) {
      saved[ours] = every_second_row(values, columns, 0);
      saved[std::string(ours).replace(ours.find("gate_proj"), 9, "up_proj")] =
          every_second_row(values, columns, 1);
    } else {
      const std::size_t size = spec.shape[1] * columns;
      for (std::size_t expert = 0; expert < spec.shape[0]; ++expert) {
        const auto begin = values.begin() + static_cast<std::ptrdiff_t>(expert * size);
        const std::vector<double> one(begin, begin + static_cast<std::ptrdiff_t>(size));
        for (const std::size_t first : {0, 1}) {
          const std::vector<double> rows = every_second_row(one, columns, first);
          saved[ours].insert(saved[ours].end(), rows.begin(), rows.end());
        }
      }
    }
  });
  return saved;
}

TEST(PublishedInkling, SaysToTheBitWhatItsSavedTextModelSays) {
  for (const json& entry : json::parse(test::read_file(test::kin_folder() / "inkling_mm_model.json"))) {
    const test::TempDir published, saved;
    test::put_made_model(published.path(), entry["config"].dump());
    json text = entry["config"]["text_config"];
    text["architectures"] = {"InklingForCausalLM"};
    const auto weights = saved_weights(describe(ModelConfig::read(published.path() / "config.json")));
    test::put_model(saved.path(), text.dump(),
                    [&](const std::string& name, const TensorSpec&) { return weights.at(name); });
    const std::vector<TokenId> tokens = entry["tokens"];
    for (const Precision precision : {Precision::f64, Precision::bf16}) {
      const std::vector<double> said = test::Runner(published.path().string(), precision)(tokens);
      EXPECT_GT(test::largest(said), 0);
      EXPECT_EQ(said, test::Runner(saved.path().string(), precision)(tokens));
    }
  }
}

}  // namespace
}  // namespace assay
