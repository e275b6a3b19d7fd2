// Nemotron Parse: NVIDIA's RADIO reads a page, convolutions join its patches by fours along the lines, and mBART's decoder without
// places writes what stands there: in 1.1 and 1.2 attending to what was read, in 3.5 behind it. Source: the code beside the weights
// and vLLM 0.33's nemotron_parse.py, nemotron_parse3_5.py. The code of the first knows the widths 1280 and 1024 alone, and three
// summaries.
#include "core/model/families/all_more.h"
#include "core/model/families/encoder_decoders.h"
#include "core/model/families/sighted_own_code.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

struct PageSizes {
  Quantity seen, width, summaries;  // summaries: of all together
};
void add_page_reader(ConfigReader& document, ModuleTree& tree, const PageSizes& sizes) {
  TowerConfig encoder(document, tree, "encoder");
  document.require(static_cast<bool>(encoder), "encoder is missing");
  TowerConfig args(*encoder, tree, "args");
  encoder->require(static_cast<bool>(args), "encoder.args is missing");
  Module tower = own_radio_tower(*encoder, *args);
  tower.path = "encoder.model_encoder";
  add_tower(tree, std::move(tower));
  const auto& [seen, width, summaries] = sizes;
  Module neck{"encoder", "what joins patches", {}, {}, {}};
  Tower(neck, Part::projector)
      .tensor("conv1.weight", {width, seen, 1})
      .tensor("conv1.bias", {width})
      .norm("layer_norm1", width, true)
      .tensor("conv2.weight", {width, width, 1, 4})
      .norm("layer_norm2", width, true)
      .matrix("sum_proj", summaries, width, true)
      .norm("layer_norm3", width, true);
  add_tower(tree, std::move(neck));
}

// Heads for tokens further on, which only training uses.
void add_extra_heads(ConfigReader& document, ModuleTree& tree, const Decoder& d) {
  const std::uint64_t count = document.number("num_extra_heads", 0);
  document.require(count <= 1000, "num_extra_heads asks for more than 1000");
  if (count == 0) return;
  for (const char* path : {"decoder.extra_heads.{layer}", "decoder.extra_proj.{layer}"}) {
    Module module =
        layers(path, "heads for tokens further on", all_layers(Quantity("num_extra_heads", count)));
    Tower(module, Part::projector).tensor("weight", {d.hidden, d.hidden}).tensor("bias", {d.hidden});
    add_tower(tree, std::move(module));
  }
}

Decoder read_page_writer(ConfigReader& config, ConfigReader& text, ModuleTree& tree) {
  Decoder d;
  d.vocabulary = text.size("vocab_size", 250027);
  d.hidden = text.size("d_model", 1024);
  d.layers = read_layers(text, "decoder_layers", 12);
  d.intermediate = text.size("decoder_ffn_dim", 4096);
  d.heads = d.kv_heads = text.size("decoder_attention_heads", 16);
  d.head_dim = text.quotient(d.hidden, d.heads, "d_model / decoder_attention_heads");
  d.tied = config.tied_embeddings(false) || text.tied_embeddings(false);
  note_sizes(tree, d);
  return d;
}

void add_page_writer(ModuleTree& tree, const Decoder& d, Module layers_of) {
  tree.modules.push_back(embedding("decoder.embed_tokens", d.vocabulary, d.hidden));
  tree.modules.push_back(norm("decoder.layernorm_embedding", d.hidden, Role::embedding_norm, true));
  tree.modules.push_back(std::move(layers_of));
  tree.modules.push_back(norm("decoder.layer_norm", d.hidden, Role::final_norm, true));
  tree.modules.push_back(
      output_head("lm_head", d.vocabulary, d.hidden, d.tied, "decoder.embed_tokens.weight"));
  tree.attention.push_back(geometry(d.attention(), all_layers(d.layers)));
}

void describe_nemotron_parse(ConfigReader& config, ModuleTree& tree) {
  const auto section = config.config().section("decoder");
  config.require(section.has_value(), "decoder is missing");
  ConfigReader text(*section, "decoder");
  const Decoder d = read_page_writer(config, text, tree);
  add_page_writer(tree, d, bart_layers(d, "decoder", "decoder's layers", true));
  if (TowerConfig encoder(config, tree, "encoder"); encoder) {
    TowerConfig args(*encoder, tree, "args");
    encoder->require(!args || args->text("model", "") == "vit_huge_patch16_224",
                     "encoder.args.model: only vit_huge_patch16_224 is described");
  }
  add_page_reader(config, tree, {1280, 1024, 3 * 1280});
  add_extra_heads(config, tree, d);
}

// A vision prefix: its decoder attends to itself alone, maybe with fewer heads of keys.
void describe_nemotron_parse35(ConfigReader& config, ModuleTree& tree) {
  const auto section = config.config().section("decoder");
  config.require(section.has_value(), "decoder is missing");
  ConfigReader text(*section, "decoder");
  config.require(!text.flag("add_cross_attention", true) && text.flag("causal_vision_prefix", false),
                 "decoder.add_cross_attention or causal_vision_prefix: Nemotron Parse 3.5 is described as "
                 "vLLM 0.33 loads it, with a prefix and no attention to what was read");
  Decoder d = read_page_writer(config, text, tree);
  d.kv_heads = text.size("self_attention_kv_heads", d.heads);
  text.require_divides(d.kv_heads, d.heads);
  add_page_writer(tree, d, bart_layers(d, "decoder", "decoder's layers", false));
  add_page_reader(
      config, tree,
      {config.size("vision_spatial_dim", 1280), d.hidden, config.size("vision_summary_dim", 3840)});
  add_extra_heads(config, tree, d);
}

constexpr std::string_view kNemotronParseArchitectures[] = {"NemotronParseForConditionalGeneration"},
                           kNemotronParseTypes[] = {"nemotron_parse"},
                           kNemotronParse35Architectures[] = {"RadioMBartPrefixForCausalLM"};

}  // namespace

const Family kNemotronParse = {
    "nemotron_parse",       "Nemotron Parse", kNemotronParseArchitectures, kNemotronParseTypes, {},
    describe_nemotron_parse};
const Family kNemotronParse35 = {
    "nemotron_parse3_5",      "Nemotron Parse 3.5", kNemotronParse35Architectures, {}, {},
    describe_nemotron_parse35};

}  // namespace assay::families
