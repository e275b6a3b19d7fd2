// w2v-BERT 2.0: a conformer over two frames of a spectrum at once. Source: transformers 5.24 (wav2vec2_bert).
#include "core/model/families/all_encoders.h"
#include "core/model/families/norm_statistics.h"
#include "core/model/families/sound_encoders.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// How a block knows what stands where.
void add_w2v_places(ConfigReader& config, Tower& block, const Quantity& hidden, const Quantity& heads,
                    std::string_view class_default) {
  const Quantity head = config.quotient(hidden, heads, "hidden_size / num_attention_heads");
  const std::string kind = config.is_null("position_embeddings_type")
                               ? "none"
                               : config.text("position_embeddings_type", class_default);
  if (kind == "relative_key") {
    const Quantity places = config.size("left_max_position_embeddings", 64) +
                            config.size("right_max_position_embeddings", 8) + Quantity(1);
    block.tensor("self_attn.distance_embedding.weight", {places, head});
  } else if (kind == "relative") {
    block.matrix("self_attn.linear_pos", hidden, hidden, false)
        .tensor("self_attn.pos_bias_u", {heads, head})
        .tensor("self_attn.pos_bias_v", {heads, head});
  } else {
    config.require(kind == "rotary" || kind == "none",
                   "position_embeddings_type is neither relative_key, relative nor rotary");
  }
}

}  // namespace

Module conformer_layers(ConfigReader& config, const std::string& path, const SoundHead& of,
                        const ConformerClass& defaults) {
  const Quantity& hidden = of.hidden;
  const Quantity wide = config.size("intermediate_size", defaults.wide),
                 heads = config.size("num_attention_heads", defaults.heads);
  Module blocks = layers(path, "blocks", all_layers(of.depth));
  Tower block(blocks, Part::audio);
  for (const std::string half : {"ffn1", "ffn2"})
    block.norm(half + "_layer_norm", hidden, true)
        .matrix(half + ".intermediate_dense", hidden, wide, true)
        .matrix(half + ".output_dense", wide, hidden, true);
  block.norm("self_attn_layer_norm", hidden, true);
  for (const char* matrix : {"linear_q", "linear_k", "linear_v", "linear_out"})
    block.matrix(std::string("self_attn.") + matrix, hidden, hidden, true);
  add_w2v_places(config, block, hidden, heads, defaults.places);
  const std::string norm =
      defaults.batch_norm ? "conv_module.batch_norm" : "conv_module.depthwise_layer_norm";
  block.norm("conv_module.layer_norm", hidden, true)
      .tensor("conv_module.pointwise_conv1.weight", {Quantity(2) * hidden, hidden, 1})
      .tensor("conv_module.depthwise_conv.weight", {hidden, 1, config.size("conv_depthwise_kernel_size", 31)})
      .norm(norm, hidden, true)
      .tensor("conv_module.pointwise_conv2.weight", {hidden, hidden, 1})
      .norm("final_layer_norm", hidden, true);
  if (defaults.batch_norm) add_norm_statistics(blocks, norm, hidden.value());
  return blocks;
}

namespace {

void describe_w2v_bert(ConfigReader& config, ModuleTree& tree) {
  config.require(!config.flag("add_adapter", false), "add_adapter is true: it is not described");
  constexpr std::string_view kStem = "Wav2Vec2Bert";
  const std::string& architecture = config.config().architecture();
  const std::string_view head =
      architecture.empty() ? "Model" : std::string_view(architecture).substr(kStem.size());
  const std::string path = head == "Model" ? "" : "wav2vec2_bert", prefix = path.empty() ? "" : path + ".";
  const Quantity hidden = config.size("hidden_size", 1024),
                 seen = config.size("feature_projection_input_dim", 160);
  const Quantity depth = read_layers(config, "num_hidden_layers", 24);
  tree.hidden_size = hidden.value(), tree.layers = depth.value();
  Module enters{path, "what enters", {}, {}, {}};
  Tower tensors(enters, Part::audio);
  if (config.real("mask_time_prob", 0.05) > 0 || config.real("mask_feature_prob", 0) > 0)
    tensors.tensor("masked_spec_embed", {hidden});
  tensors.norm("feature_projection.layer_norm", seen, true)
      .matrix("feature_projection.projection", seen, hidden, true);
  tree.modules = {std::move(enters),
                  conformer_layers(config, prefix + "encoder.layers.{layer}", {hidden, depth}, {})};
  if (head == "Model")
    tree.aliases = {{"", "wav2vec2_bert."}};
  else
    add_sound_head(config, tree, {hidden, depth, 768, std::nullopt}, head);
}

constexpr std::string_view kW2vBertArchitectures[] = {"Wav2Vec2BertModel", "Wav2Vec2BertForCTC",
                                                      "Wav2Vec2BertForSequenceClassification",
                                                      "Wav2Vec2BertForAudioFrameClassification"},
                           kW2vBertTypes[] = {"wav2vec2-bert"};

}  // namespace

const Family kW2vBert = {"wav2vec2_bert",  "w2v-BERT 2.0", kW2vBertArchitectures, kW2vBertTypes, {},
                         describe_w2v_bert};

}  // namespace assay::families
