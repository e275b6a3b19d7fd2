// Every key of a config.json: used as transformers uses it, without effect where it has none there, or
// refused.
#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "core/formats/json.h"
#include "core/model/module_tree.h"
#include "core/system/error.h"
#include "refimpl/models/config_keys.h"
#include "tests/refimpl/models/golden_run.h"

namespace assay {
namespace {

fs::path fixtures() {
  return test::source_dir() / "data/fixtures/config_keys";
}

// The model's weights under a changed config.
class Changed {
 public:
  Changed(const std::string& model, const ParsedJson& entry) {
    ParsedJson config = ParsedJson::parse(test::read_file(test::folder(model) / "config.json"));
    for (const auto& [key, value] : entry.at("set").items()) config[key] = value;
    if (entry.contains("removed"))
      for (const auto& key : entry.at("removed")) config.erase(key.get<std::string>());
    test::write_file(dir_ / "config.json", config.dump());
    fs::create_symlink(test::folder(model) / "model.safetensors", dir_ / "model.safetensors");
  }
  const fs::path& path() const { return dir_.path(); }

 private:
  test::TempDir dir_;
};

std::string told(const ParsedJson& entry) {
  return entry.at("model").get<std::string>() + " " + entry.at("set").dump() +
         (entry.contains("removed") ? " without " + entry.at("removed").dump() : "");
}

// The logits of the last token, every fourth of them.
std::vector<double> last_logits(const fs::path& model, const std::vector<TokenId>& tokens) {
  test::Runner run(model, Precision::f64);
  const std::vector<double> logits = run(tokens);
  const std::size_t vocabulary = logits.size() / tokens.size();
  std::vector<double> last;
  for (std::size_t v = 0; v < vocabulary; v += 4) last.push_back(logits[logits.size() - vocabulary + v]);
  return last;
}

// data/make_config_variants.py: what transformers computes, in float64.
TEST(ConfigKeys, ChangedOnesChangeLogitsAsInTransformers) {
  const ParsedJson variants = ParsedJson::parse(test::read_file(fixtures() / "variants.json"));
  const auto stored = test::read_tensors(fixtures() / "variants.safetensors");
  const std::vector<TokenId> tokens = test::tokens_of(stored.at("tokens"));
  std::size_t equal = 0;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const ParsedJson& entry = variants[i];
    const auto truth = stored.find(std::to_string(i));
    const bool computed = truth != stored.end();
    const Changed model(entry.at("model"), entry);
    try {
      const std::vector<double> last = last_logits(model.path(), tokens);
      EXPECT_TRUE(computed) << "should be refused: " << told(entry);
      if (!computed) continue;
      EXPECT_LE(test::largest_difference(last, truth->second.values), 1e-11 * test::largest(last))
          << told(entry);
      ++equal;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 2) << told(entry);
      EXPECT_FALSE(computed) << told(entry) << ": " << error.line();
    }
  }
  EXPECT_GT(equal, 200U);
}

using Declared = std::map<std::string, const ModelRule*>;
Declared rules_by_type() {
  Declared rules;
  for (const ModelRule* rule : all_model_rules()) {
    for (const std::string_view family : rule->families) rules.emplace(family, rule);
  }
  rules["gemma3_text"] = rules.at("gemma3");
  rules["gemma4_text"] = rules.at("gemma4");
  for (const char* seeing : {"qwen3_5", "qwen3_5_moe"})
    rules[std::string(seeing) + "_text"] = rules.at(seeing);
  for (const char* seeing : {"llama4", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe"})
    rules[std::string(seeing) + "_text"] = rules.at(seeing);
  rules["ministral3"] = rules.at("mistral3");
  for (const char* text :
       {"cohere_compass", "dots3_note", "ernie4_5_vl_moe", "glm5_next", "glm_ocr", "hunyuan_vl", "inkling",
        "mistral_large4", "molmo2", "muse_glimmer", "muse_spark", "paddleocr_vl", "qwen4_exp"})
    rules[std::string(text) + "_text"] = rules.at(text);
  rules["emu3_text_model"] = rules.at("emu3");
  rules["falcon_mamba"] = rules.at("mamba");
  rules["mllama_text_model"] = rules.at("mllama");
  rules["modernbert-decoder"] = rules.at("modernbert_decoder");
  rules["openai-gpt"] = rules.at("openai_gpt");
  return rules;
}

bool holds(std::span<const std::string_view> list, const std::string& key) {
  return std::find(list.begin(), list.end(), key) != list.end();
}
bool is_fixed(std::span<const FixedKey> list, const std::string& key) {
  return std::any_of(list.begin(), list.end(), [&](const FixedKey& fixed) { return fixed.key == key; });
}

// data/make_config_keys.py: model_type, key, "read" by the class or "-", its default.
struct ClassKey {
  std::string type, key;
  bool read = false;
};
std::vector<ClassKey> keys_of_transformers() {
  std::istringstream lines(test::read_file(fixtures() / "transformers.tsv"));
  std::vector<ClassKey> keys;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string type, key, read;
    fields >> type >> key >> read;
    keys.push_back({type, key, read == "read"});
  }
  return keys;
}

TEST(ConfigKeys, EveryOneThatAClassOfTransformersReadsIsDeclared) {
  const Declared rules = rules_by_type();
  std::set<std::string> types;
  for (const ClassKey& of_class : keys_of_transformers()) {
    const auto rule = rules.find(of_class.type);
    if (rule == rules.end()) continue;
    types.insert(of_class.type);
    const ConfigKeys& keys = rule->second->keys;
    const bool declared = holds(keys.used, of_class.key) || holds(keys.idle, of_class.key) ||
                          is_fixed(keys.fixed, of_class.key) || is_fixed(fixed_everywhere(), of_class.key) ||
                          is_idle_everywhere(of_class.key);
    EXPECT_TRUE(declared) << of_class.type << " " << of_class.key;
  }
  EXPECT_EQ(types.size(), 145U);
}

// What is used here and unknown to the class would change numbers that transformers leaves alone.
TEST(ConfigKeys, NoneIsUsedThatTheClassDoesNotKnow) {
  std::map<std::string, std::set<std::string>> known;
  for (const ClassKey& of_class : keys_of_transformers()) known[of_class.type].insert(of_class.key);
  const std::map<std::string, std::set<std::string>> reasons = {
      {"qwen3_moe", {"head_dim"}},
      {"mistral", {"layer_types"}},                  // AutoConfig makes it a Ministral
      {"gemma3_text", {"_sliding_window_pattern"}},  // as transformers 4.50 saved it
      {"gpt_oss", {"experts_per_token"}},            // OpenAI's own name, always beside the other
      {"deepseek_v2", {"moe_layer_freq", "num_nextn_predict_layers", "num_mtp_layers", "num_local_experts"}},
      {"gpt2", {"intermediate_size"}},  // GGUF's, renamed
      {"deepseek_v3",
       {"moe_layer_freq", "num_nextn_predict_layers"}},  // of DeepSeek's code, and 1 wherever it is published
      // The prediction layer, which no class makes; names of other releases for the same number.
      {"deepseek_v32", {"moe_layer_freq", "num_nextn_predict_layers", "num_mtp_layers"}},
      {"glm_moe_dsa", {"num_nextn_predict_layers", "num_mtp_layers"}},
      {"ernie4_5_moe", {"num_nextn_predict_layers"}},
      {"hy_v3", {"num_nextn_predict_layers"}},
      // The class puts partial_rotary_factor into rope_parameters.
      {"glm", {"partial_rotary_factor"}},
      {"glm4", {"partial_rotary_factor"}},
      {"glm4_moe", {"partial_rotary_factor", "num_nextn_predict_layers", "num_mtp_layers"}},
      {"nemotron", {"partial_rotary_factor"}},
      {"persimmon", {"partial_rotary_factor"}},
      {"phi", {"partial_rotary_factor"}},
      {"stablelm", {"partial_rotary_factor"}},
      {"minimax_m2", {"partial_rotary_factor", "rotary_dim"}},
      // As they are published, which the class takes apart; a text within a model that sees.
      {"hy_v4", {"first_k_dense_replace", "moe_layer_freq", "num_nextn_predict_layers", "num_mtp_layers"}},
      {"dots3_note_text",
       {"moe_shared_expert_intermediate_size", "num_nextn_predict_layers", "num_mtp_layers",
        "mtp_layer_types", "per_layer_config", "swa_head_dim", "swa_kv_lora_rank", "swa_num_attention_heads",
        "swa_q_lora_rank", "swa_qk_nope_head_dim", "swa_qk_rope_head_dim", "swa_v_head_dim"}},
      {"glm5_next_text", {"num_nextn_predict_layers", "num_mtp_layers", "text_config", "vision_config"}},
      // Which validators of ropes read, by a name.
      {"cohere2_moe", {"original_max_position_embeddings", "rope_parameters"}},
      // Names of the first releases, of the tree; one rule for two classes.
      {"falcon", {"n_layer", "n_head", "n_head_kv"}},
      {"opt", {"_remove_final_layer_norm"}},
      {"ministral3", {"layer_types"}},
      {"granitemoe", {"shared_intermediate_size"}},
      {"qwen2_moe", {"num_local_experts"}},
      {"solar_open", {"intermediate_size"}},
      {"qwen4_exp_text", {"intermediate_size", "partial_rotary_factor"}},  // of no matrix; put into ropes
      {"qwen2_vl_text", {"tie_word_embeddings"}},
      {"qwen2_5_vl_text", {"tie_word_embeddings"}},
      {"qwen3_vl_text", {"tie_word_embeddings"}},
      {"glm4_moe_lite", {"num_nextn_predict_layers", "first_k_dense_replace"}},
      {"axk1", {"num_nextn_predict_layers"}},
      {"longcat_flash", {"num_hidden_layers", "num_nextn_predict_layers"}},
      // As they are published, which the class takes apart or knows without being told.
      {"mimo_v2_flash",
       {"add_full_attention_sink_bias", "add_swa_attention_sink_bias", "hybrid_layer_pattern",
        "layernorm_epsilon", "moe_layer_freq", "n_shared_experts", "num_nextn_predict_layers",
        "partial_rotary_factor", "swa_head_dim", "swa_num_attention_heads", "swa_num_key_value_heads",
        "swa_rope_theta", "swa_v_head_dim"}},
      {"step3p5", {"num_experts", "use_moe_router_bias", "first_k_dense_replace"}},
      {"gemma4_text", {"num_experts_per_tok"}},
      {"phimoe", {"num_experts"}},
      {"exaone_moe", {"num_local_experts", "num_nextn_predict_layers", "mtp_layer_types"}},
      // As state-spaces' own checkpoints spell them; one rule for two classes.
      {"mamba", {"d_model", "n_layer", "intermediate_size", "mixer_rms_eps"}},
      {"falcon_mamba", {"d_model", "n_layer", "intermediate_size"}},
      {"jetmoe", {"num_attention_heads", "num_layers"}},  // which follow from others, or have two names
      // One list for every decoder.
      {"zaya", {"intermediate_size"}},
      {"inkling_text", {"mtp_config", "num_nextn_predict_layers", "tie_word_embeddings"}},
      {"muse_glimmer_text", {"hidden_act"}},
      {"muse_spark_text", {"num_experts"}},
      {"mamba2", {"d_model", "n_layer"}},
      // The class puts partial_rotary_factor into rope_parameters; one rule for those with experts and those without.
      {"qwen3_next", {"partial_rotary_factor", "full_attention_interval"}},
      {"qwen3_5_text",
       {"partial_rotary_factor", "moe_intermediate_size", "shared_expert_intermediate_size", "num_experts",
        "num_experts_per_tok"}},
      {"qwen3_5_moe_text", {"partial_rotary_factor", "intermediate_size"}},
      // Which the class of a text leaves to that of the whole, or has without a default; one rule for several classes.
      {"bailing_hybrid", {"linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim"}},
      {"emu3_text_model", {"mlp_bias", "attention_bias"}},
      {"glm4v_text", {"attention_bias", "partial_rotary_factor", "tie_word_embeddings"}},
      {"glm_ocr_text", {"attention_bias", "partial_rotary_factor", "tie_word_embeddings"}},
      {"glm4v_moe_text", {"use_qk_norm", "partial_rotary_factor"}},
      {"qwen3_omni_moe_text", {"num_local_experts", "tie_word_embeddings"}},
      {"kolibri1", {"intermediate_size", "num_local_experts"}},
      {"flint", {"num_local_experts"}},
      // As MiniMax publishes them.
      {"minimax",
       {"layernorm_full_attention_alpha", "layernorm_full_attention_beta", "layernorm_linear_attention_alpha",
        "layernorm_linear_attention_beta", "layernorm_mlp_alpha", "layernorm_mlp_beta", "rotary_dim",
        "attn_type_list"}},
      {"recurrent_gemma", {"partial_rotary_factor", "_block_types"}},
      // Published names of what the class calls otherwise or takes from another key.
      {"nemotron_h", {"num_hidden_layers", "attention_head_dim", "block_configs", "mtp_block_configs"}},
      // … and Kimi K3's, of which there is no class.
      {"kimi_linear",
       {"model_max_length", "moe_layer_freq", "attn_res_block_size", "activation_situ_beta",
        "activation_situ_linear_beta", "mla_use_output_gate", "routed_expert_hidden_size",
        "latent_moe_use_norm"}},
  };
  for (const auto& [type, rule] : rules_by_type()) {
    if (!known.contains(type)) continue;
    const auto excused = reasons.find(type);
    for (const std::string_view used : rule->keys.used) {
      const std::string key(used);
      if (key.find('.') != std::string::npos) continue;  // nested
      if (excused != reasons.end() && excused->second.contains(key)) continue;
      EXPECT_TRUE(known.at(type).contains(key)) << type << " " << key;
    }
  }
}

TEST(ConfigKeys, UnreadOnesAreNamed) {
  ParsedJson config = ParsedJson::parse(test::read_file(test::folder("llama") / "config.json"));
  const ConfigKeys& keys = rules_by_type().at("llama")->keys;
  const auto unread = [&] { return unread_keys(ModelConfig::from_json(config, "config.json"), keys); };
  EXPECT_EQ(unread(), std::vector<std::string>{});
  config["partial_rotary_factor"] = 0.5;
  config["attn_logit_softcapping"] = 30.0;
  config["layer_types"] = nullptr;
  config["initializer_range"] = 0.1;
  config["rope_scaling"]["alpha"] = 2.0;
  EXPECT_EQ(unread(), (std::vector<std::string>{"attn_logit_softcapping", "partial_rotary_factor",
                                                "rope_scaling.alpha"}));
}

// Families that are described or run nowhere yet have configs there too.
std::optional<ModelConfig> config_that_runs(const fs::path& path) {
  try {
    ModelConfig config = ModelConfig::read(path);
    rule_for(describe(config), config);
    return config;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Published configs of families that run: none of their keys is unknown here.
TEST(ConfigKeys, PublishedConfigsHaveNoUnreadOnes) {
  ASSAY_CASE_OR_SKIP(folder, "configs");
  std::size_t seen = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const auto config = config_that_runs(entry.path());
    if (!config) continue;
    const ConfigKeys& keys = rule_for(describe(*config), *config).keys;
    for (const std::string& key : unread_keys(*config, keys))
      ADD_FAILURE() << entry.path().filename() << ": " << key;
    EXPECT_NO_THROW(require_fixed_keys(*config, keys)) << entry.path();
    ++seen;
  }
  EXPECT_GT(seen, 5U);
}

}  // namespace
}  // namespace assay
