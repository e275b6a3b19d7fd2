// Encoders of text of 2020 to 2022 that are BERTs but for what they have beside: LiLT, which reads pages, LUKE with a table of
// entities, Nyströmformer, MRA and YOSO, whose attention is approximated, X-MOD with an adapter for each language, Splinter, which
// finds answers, ConvBERT, half of whose heads convolve. Source: transformers 5.24.
#include <algorithm>

#include "core/model/families/all_kin.h"
#include "core/model/families/encoder_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

void add_beside(Module& module, std::string name, const Quantity& in, const Quantity& out, bool bias = true) {
  add_linear(module, {.name = std::move(name),
                      .in = in,
                      .out = out,
                      .role = Role::other,
                      .part = Part::attention,
                      .bias = bias});
}

Quantity part_of(ConfigReader& config, const Quantity& whole, const Quantity& parts,
                 const std::string& name) {
  config.require(parts.value() <= whole.value(), name + " is 0");
  return {name, whole.value() / parts.value()};
}

// LiLT: a second, narrower stream for where words stand, in every layer.
void add_layout(ConfigReader& config, const Decoder& d, Module& tables, Module& layer) {
  const Quantity shrink = config.size("channel_shrink_ratio", 4),
                 hidden = part_of(config, d.hidden, shrink, "hidden_size / channel_shrink_ratio"),
                 wide = part_of(config, d.intermediate, shrink, "intermediate_size / channel_shrink_ratio"),
                 sixth = part_of(config, d.hidden, 6, "hidden_size / 6"),
                 places = config.size("max_2d_position_embeddings", 1024);
  const std::string before = "layout_embeddings.";
  const auto table = [&](const std::string& name, const Quantity& rows, const Quantity& width) {
    tables.tensors.push_back(parameter(before + name + "_position_embeddings.weight", {rows, width},
                                       Role::position_embedding, Part::embedding));
  };
  for (const char* side : {"x", "y", "h", "w"}) table(side, places, sixth);
  table("box", config.size("max_position_embeddings", 512), hidden);
  add_beside(tables, before + "box_linear_embeddings", d.hidden, hidden);
  add_norm(tables, before + "LayerNorm", hidden, Role::embedding_norm, true);
  for (const char* name : {"layout_query", "layout_key", "layout_value", "layout_output.dense"})
    add_beside(layer,
               std::string(name).starts_with("layout_o") ? std::string("attention.") + name
                                                         : std::string("attention.self.") + name,
               hidden, hidden);
  add_norm(layer, "attention.layout_output.LayerNorm", hidden, Role::post_attention_norm, true);
  add_beside(layer, "layout_intermediate.dense", hidden, wide);
  add_beside(layer, "layout_output.dense", wide, hidden);
  add_norm(layer, "layout_output.LayerNorm", hidden, Role::post_feedforward_norm, true);
}

void describe_lilt(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin{.prefix = "lilt.", .more = add_layout};
  kin.heads.classes = EncoderHeads::Classes::within;
  describe_encoder(config, tree, kin);
}

// What scores through landmarks, at several resolutions or by hashing has heads alike; a convolution of each head may stand
// beside attention.
EncoderKin approximated(ConfigReader& config, std::string prefix) {
  config.require(encoder_use(config) != EncoderUse::answers || label_count(config).value() == 2,
                 "id2label does not name two: the class that finds answers takes two whatever it says");
  EncoderKin kin{.prefix = std::move(prefix), .positions_in_front = 2};
  kin.heads.pooler = "";
  kin.heads.classes = EncoderHeads::Classes::within;
  kin.heads.choices_beside = "pre_classifier";
  return kin;
}
void add_convolution_of_heads(const Decoder& d, const std::optional<Quantity>& window, Module& layer) {
  if (!window) return;
  layer.tensors.push_back(
      parameter("attention.self.conv.weight", {d.heads, 1, *window, 1}, Role::convolution, Part::attention));
}

void describe_nystromformer(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin = approximated(config, "nystromformer.");
  kin.sizes.vocabulary = 30000, kin.positions = 510;
  kin.more = [](ConfigReader& config, const Decoder& d, Module&, Module& layer) {
    add_convolution_of_heads(d, config.optional_size("conv_kernel_size", 65), layer);
  };
  describe_encoder(config, tree, kin);
}
void describe_mra(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin = approximated(config, "mra.");
  kin.sizes.vocabulary = 50265, kin.types = 1;
  describe_encoder(config, tree, kin);
}
void describe_yoso(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin = approximated(config, "yoso.");
  kin.sizes.vocabulary = 50265, kin.positions = 4096, kin.types = 1;
  kin.more = [](ConfigReader& config, const Decoder& d, Module&, Module& layer) {
    add_convolution_of_heads(d, config.optional_size("conv_window"), layer);
  };
  describe_encoder(config, tree, kin);
}

EncoderHeads heads_of_roberta() {
  EncoderHeads heads;
  heads.classes = EncoderHeads::Classes::within;
  heads.guessing = {"lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias"};
  return heads;
}

// X-MOD: in every layer a pair of matrices for each language, of which a text meets those of its own.
void add_languages(ConfigReader& config, const Decoder& d, Module&, Module& layer) {
  const Quantity narrow = part_of(config, d.hidden, config.size("adapter_reduction_factor", 2),
                                  "hidden_size / adapter_reduction_factor");
  if (config.flag("adapter_layer_norm", false))
    add_norm(layer, "output.adapter_layer_norm", d.hidden, Role::post_feedforward_norm, true);
  Module adapters{"output.adapter_modules", "adapters of languages", {}, {}, {}};
  for (const std::string& language : config.texts("languages").value_or(std::vector<std::string>{"en_XX"})) {
    add_beside(adapters, language + ".dense1", d.hidden, narrow);
    add_beside(adapters, language + ".dense2", narrow, d.hidden);
  }
  layer.children.push_back(std::move(adapters));
}
void describe_xmod(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin{.prefix = "roberta.", .heads = heads_of_roberta(), .more = add_languages};
  if (config.flag("pre_norm", false)) kin.last_norm = "encoder.LayerNorm";
  describe_encoder(config, tree, kin);
}

// LUKE: entities have a table of their own, and queries that differ by what asks and what is asked.
void add_entities(ConfigReader& config, const Decoder& d, Module& tables, Module& layer) {
  const Quantity width = config.size("entity_emb_size", 256);
  const std::string before = "entity_embeddings.";
  const auto table = [&](const char* name, const Quantity& rows, const Quantity& columns) {
    tables.tensors.push_back(
        parameter(before + name + ".weight", {rows, columns}, Role::position_embedding, Part::embedding));
  };
  table("entity_embeddings", config.size("entity_vocab_size", 500000), width);
  if (width.value() != d.hidden.value())
    add_beside(tables, before + "entity_embedding_dense", width, d.hidden, false);
  table("position_embeddings", config.size("max_position_embeddings", 512), d.hidden);
  table("token_type_embeddings", config.size("type_vocab_size", 2), d.hidden);
  add_norm(tables, before + "LayerNorm", d.hidden, Role::embedding_norm, true);
  if (!config.flag("use_entity_aware_attention", true)) return;
  for (const char* name : {"self.w2e_query", "self.e2w_query", "self.e2e_query"})
    add_further_heads(layer.children.front(), d, name);
}

// What guesses entities, whose table it shares.
void add_entity_guesses(ConfigReader& config, ModuleTree& tree) {
  const Quantity width = config.size("entity_emb_size", 256),
                 count = config.size("entity_vocab_size", 500000);
  Module head = head_module("head that guesses entities");
  add_linear(head, head_matrix("entity_predictions.transform.dense",
                               Quantity("hidden_size", tree.hidden_size), width));
  add_norm(head, "entity_predictions.transform.LayerNorm", width, Role::final_norm, true);
  TensorSpec table =
      parameter("entity_predictions.decoder.weight", {count, width}, Role::output_head, Part::output);
  if (tree.tied_embeddings)
    table.storage = Storage::tied, table.same_as = "luke.entity_embeddings.entity_embeddings.weight";
  TensorSpec bias = parameter("entity_predictions.bias", {count}, Role::output_head, Part::output);
  bias.bias = true;
  head.tensors.push_back(std::move(table)), head.tensors.push_back(std::move(bias));
  tree.modules.push_back(std::move(head));
}

// The matrix that scores words is none of the tables, whatever the config says.
void own_scores_of_words(ModuleTree& tree) {
  for (TensorSpec& spec : tree.modules.back().tensors) {
    if (spec.name == "lm_head.decoder.weight") spec.storage = Storage::own, spec.same_as.clear();
  }
}

// What classifies entities reads one, two or three vectors of them.
struct EntityClass {
  std::string_view architecture;
  std::uint64_t vectors;
  bool bias;
};
constexpr EntityClass kEntityClasses[] = {{"LukeForEntityClassification", 1, true},
                                          {"LukeForEntityPairClassification", 2, false},
                                          {"LukeForEntitySpanClassification", 3, true}};

void describe_luke(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin{.prefix = "luke.", .more = add_entities};
  kin.sizes.vocabulary = 50267;
  kin.heads.guessing = {"lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias"};
  const std::string& architecture = config.config().architecture();
  const auto entities = std::find_if(std::begin(kEntityClasses), std::end(kEntityClasses),
                                     [&](const EntityClass& c) { return c.architecture == architecture; });
  const bool classifies = entities != std::end(kEntityClasses);
  const bool guesses = encoder_use(config) == EncoderUse::guessing;
  kin.heads.pools_always = guesses || classifies;
  if (classifies) {
    const Decoder d = read_encoder(config, tree, kin);
    add_encoder_tables(config, tree, d, kin, kin.prefix);
    Module layer = encoder_layer(d, kin, kin.prefix), more{"", "entities", {}, {}, {}};
    add_entities(config, d, more, layer);
    for (TensorSpec& spec : more.tensors) spec.name = kin.prefix + spec.name;
    tree.modules.push_back(std::move(more)), tree.modules.push_back(std::move(layer));
    Module head = head_module("classifier of entities");
    add_linear(head, head_matrix(kin.prefix + "pooler.dense", d.hidden, d.hidden));
    Linear classifier =
        head_matrix("classifier", Quantity(entities->vectors) * d.hidden, label_count(config));
    classifier.bias = entities->bias;
    add_linear(head, classifier);
    tree.modules.push_back(std::move(head));
    return;
  }
  describe_encoder(config, tree, kin);
  if (!guesses) return;
  own_scores_of_words(tree);
  add_entity_guesses(config, tree);
}

// Splinter: a start and an end for each question that stands in the text.
void describe_splinter(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin;
  kin.heads.pooler = "";
  const Decoder d = read_encoder(config, tree, kin);
  const bool alone = encoder_use(config) == EncoderUse::alone;
  const std::string prefix = alone ? "" : "splinter.";
  add_encoder_tables(config, tree, d, kin, prefix);
  tree.modules.push_back(encoder_layer(d, kin, prefix));
  if (alone) {
    tree.aliases = {{"", "splinter."}};
    return;
  }
  Module head = head_module("where answers stand");
  const std::string before = "splinter_qass.";
  for (const char* side : {"query_start", "query_end", "start", "end"}) {
    add_linear(head, head_matrix(before + side + "_transform.dense", d.hidden, d.hidden));
    add_norm(head, before + side + "_transform.LayerNorm", d.hidden, Role::final_norm, true);
  }
  for (const char* side : {"start", "end"}) {
    Linear scores = head_matrix(before + side + "_classifier", d.hidden, d.hidden);
    scores.bias = false;
    add_linear(head, scores);
  }
  tree.modules.push_back(std::move(head));
}

// ConvBERT: fewer heads, of half their width, beside convolutions whose kernels are made of each token.
struct MixedHeads {
  Quantity count, width;
};
MixedHeads mixed_heads(ConfigReader& config, const Decoder& d) {
  const std::uint64_t ratio = config.size("head_ratio", 2).value(), heads = d.heads.value();
  const Quantity count("num_attention_heads / head_ratio", std::max<std::uint64_t>(heads / ratio, 1));
  config.require_divides(count, d.hidden);
  const std::uint64_t each = d.hidden.value() / count.value() / 2;
  config.require(each > 0, "hidden_size / num_attention_heads / 2 is 0");
  return {count, Quantity("heads × width", count.value() * each)};
}

void add_mixed_heads(ConfigReader& config, const Decoder& d, Module&, Module& layer) {
  const MixedHeads mixed = mixed_heads(config, d);
  const Quantity kernel = config.size("conv_kernel_size", 9);
  Module attend{"attention", "attention and convolutions", {}, {}, {}};
  for (const char* name : {"query", "key", "value", "conv_out_layer"})
    add_beside(attend, std::string("self.") + name, d.hidden, mixed.width);
  const auto add = [&](const char* name, const std::vector<Quantity>& shape) {
    attend.tensors.push_back(parameter(std::string("self.key_conv_attn_layer.") + name, shape,
                                       Role::convolution, Part::attention));
  };
  add("depthwise.weight", {d.hidden, 1, kernel});
  add("pointwise.weight", {mixed.width, d.hidden, 1});
  add("bias", {mixed.width, 1});
  add_beside(attend, "self.conv_kernel_layer", mixed.width, mixed.count * kernel);
  add_beside(attend, "output.dense", d.hidden, d.hidden);
  layer.children.front() = std::move(attend);
  const Quantity groups = config.size("num_groups", 1);
  if (groups.value() == 1) return;
  config.require_divides(groups, d.hidden), config.require_divides(groups, d.intermediate);
  Module mlp{"", "MLP in groups", {}, {}, {}};
  const auto grouped = [&](const std::string& name, const Quantity& in, const Quantity& out) {
    const Quantity each_in("in / groups", in.value() / groups.value()),
        each_out("out / groups", out.value() / groups.value());
    mlp.tensors.push_back(
        parameter(name + ".weight", {groups, each_in, each_out}, Role::other, Part::dense_mlp));
    mlp.tensors.push_back(parameter(name + ".bias", {out}, Role::other, Part::dense_mlp));
    mlp.tensors.back().bias = true;
  };
  grouped("intermediate.dense", d.hidden, d.intermediate);
  grouped("output.dense", d.intermediate, d.hidden);
  layer.children.back() = std::move(mlp);
}

void describe_convbert(ConfigReader& config, ModuleTree& tree) {
  EncoderKin kin{
      .prefix = "convbert.", .narrow = 768, .widens = "embeddings_project", .more = add_mixed_heads};
  kin.heads.pooler = "";
  kin.heads.classes = EncoderHeads::Classes::within;
  if (config.flag("summary_use_proj", false)) kin.heads.choices_beside = "sequence_summary.summary";
  kin.heads.guessing = {"generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head",
                        "generator_lm_head.bias"};
  describe_encoder(config, tree, kin);
}

constexpr std::string_view kLiltArchitectures[] = {"LiltModel", "LiltForSequenceClassification",
                                                   "LiltForTokenClassification", "LiltForQuestionAnswering"},
                           kLiltTypes[] = {"lilt"},
                           kNystromformerArchitectures[] = {"NystromformerModel",
                                                            "NystromformerForMaskedLM",
                                                            "NystromformerForSequenceClassification",
                                                            "NystromformerForTokenClassification",
                                                            "NystromformerForQuestionAnswering",
                                                            "NystromformerForMultipleChoice"},
                           kNystromformerTypes[] = {"nystromformer"},
                           kMraArchitectures[] = {"MraModel",
                                                  "MraForMaskedLM",
                                                  "MraForSequenceClassification",
                                                  "MraForTokenClassification",
                                                  "MraForQuestionAnswering",
                                                  "MraForMultipleChoice"},
                           kMraTypes[] = {"mra"},
                           kYosoArchitectures[] = {"YosoModel",
                                                   "YosoForMaskedLM",
                                                   "YosoForSequenceClassification",
                                                   "YosoForTokenClassification",
                                                   "YosoForQuestionAnswering",
                                                   "YosoForMultipleChoice"},
                           kYosoTypes[] = {"yoso"},
                           kXmodArchitectures[] = {"XmodModel",
                                                   "XmodForMaskedLM",
                                                   "XmodForCausalLM",
                                                   "XmodForSequenceClassification",
                                                   "XmodForTokenClassification",
                                                   "XmodForQuestionAnswering",
                                                   "XmodForMultipleChoice"},
                           kXmodTypes[] = {"xmod"},
                           kLukeArchitectures[] = {"LukeModel",
                                                   "LukeForMaskedLM",
                                                   "LukeForEntityClassification",
                                                   "LukeForEntityPairClassification",
                                                   "LukeForEntitySpanClassification",
                                                   "LukeForSequenceClassification",
                                                   "LukeForTokenClassification",
                                                   "LukeForQuestionAnswering",
                                                   "LukeForMultipleChoice"},
                           kLukeTypes[] = {"luke"},
                           kSplinterArchitectures[] = {"SplinterModel", "SplinterForQuestionAnswering",
                                                       "SplinterForPreTraining"},
                           kSplinterTypes[] = {"splinter"},
                           kConvbertArchitectures[] = {"ConvBertModel",
                                                       "ConvBertForMaskedLM",
                                                       "ConvBertForSequenceClassification",
                                                       "ConvBertForTokenClassification",
                                                       "ConvBertForQuestionAnswering",
                                                       "ConvBertForMultipleChoice"},
                           kConvbertTypes[] = {"convbert"};

}  // namespace

const Family kLilt = {"lilt", "LiLT", kLiltArchitectures, kLiltTypes, {}, describe_lilt};
const Family kNystromformer = {
    "nystromformer",       "Nyströmformer", kNystromformerArchitectures, kNystromformerTypes, {},
    describe_nystromformer};
const Family kMra = {"mra", "MRA", kMraArchitectures, kMraTypes, {}, describe_mra};
const Family kYoso = {"yoso", "YOSO", kYosoArchitectures, kYosoTypes, {}, describe_yoso};
const Family kXmod = {"xmod", "X-MOD", kXmodArchitectures, kXmodTypes, {}, describe_xmod};
const Family kLuke = {"luke", "LUKE", kLukeArchitectures, kLukeTypes, {}, describe_luke};
const Family kSplinter = {"splinter",     "Splinter", kSplinterArchitectures,
                          kSplinterTypes, {},         describe_splinter};
const Family kConvbert = {"convbert",     "ConvBERT", kConvbertArchitectures,
                          kConvbertTypes, {},         describe_convbert};

}  // namespace assay::families
