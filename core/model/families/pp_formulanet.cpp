// PP-FormulaNet, which reads formulas out of pictures: GOT-OCR's SAM, two convolutions and two matrices, and mBART's decoder.
// Source: transformers 5.23 (pp_formulanet).
#include "core/model/families/all_watchers.h"
#include "core/model/families/encoder_decoders.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

void add_formula_reader(ConfigReader& config, ModuleTree& tree) {
  TowerConfig vision(config, tree, "vision_config");
  config.require(static_cast<bool>(vision), "vision_config is missing");
  add_tower(tree, sam_encoder_of(*vision, "model.encoder", 3072, 512));
  const Quantity in = vision->size("post_conv_in_channels", 256),
                 out = vision->size("post_conv_out_channels", 1024);
  const Quantity between = vision->size("post_conv_mid_channels", 512);
  Module projector{"model.encoder.multi_modal_projector", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .tensor("conv1.weight", {between, in, 3, 3})
      .tensor("conv2.weight", {out, between, 3, 3})
      .matrix("linear_1", out, out, true)
      .matrix("linear_2", out, vision->size("decoder_hidden_size", 512), true);
  add_tower(tree, std::move(projector));
}

void describe_pp_formulanet(ConfigReader& config, ModuleTree& tree) {
  Decoder d = read_writer(
      config, {.vocabulary = 50000, .hidden = 512, .intermediate = 2048, .layers = 8, .heads = 16});
  d.tied = false;  // whatever the config says: the class ties nothing
  note_sizes(tree, d);
  const std::string path = "model.decoder";
  Module tables{path, "places", {}, {}, {}};
  tables.tensors.push_back(parameter("embed_positions.weight",
                                     {config.size("max_position_embeddings", 2560) + Quantity(2), d.hidden},
                                     Role::position_embedding, Part::embedding));
  add_norm(tables, "layernorm_embedding", d.hidden, Role::embedding_norm, true);
  tree.modules = {embedding(path + ".embed_tokens", d.vocabulary, d.hidden), std::move(tables),
                  bart_layers(d, path, "layers", true),
                  norm(path + ".layer_norm", d.hidden, Role::final_norm, true),
                  output_head("lm_head", d.vocabulary, d.hidden, d.tied, "")};
  tree.attention.push_back(geometry(d.attention(), all_layers(d.layers)));
  add_formula_reader(config, tree);
}

constexpr std::string_view kPpFormulanetArchitectures[] = {"PPFormulaNetForConditionalGeneration"},
                           kPpFormulanetTypes[] = {"pp_formulanet"};

}  // namespace

const Family kPpFormulanet = {
    "pp_formulanet",       "PP-FormulaNet", kPpFormulanetArchitectures, kPpFormulanetTypes, {},
    describe_pp_formulanet};

}  // namespace assay::families
