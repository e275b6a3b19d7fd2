// Models put together of two that are families of their own: one reads (a text, an image, a sound), and another, which attends to
// what it made, writes. BERT2BERT and its like, TrOCR, Donut, captioners with GPT-2, wav2vec 2.0 with mBART. What reads images or
// sound is told as a tower. TrOCR's own decoder stands here too, as no other model has it.
// Source: transformers 5.23 (encoder_decoder, vision_encoder_decoder, speech_encoder_decoder, trocr).
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/model/families/all_encoders.h"
#include "core/model/families/all_watchers.h"
#include "core/model/families/composed.h"
#include "core/model/families/encoder_decoders.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// TrOCR's decoder: BART's, whose tables and norm may be left out, and which may meet something wider than itself.
void describe_trocr_decoder(ConfigReader& config, ModuleTree& tree) {
  Decoder d = read_writer(
      config, {.vocabulary = 50265, .hidden = 1024, .intermediate = 4096, .layers = 12, .heads = 16});
  d.tied = config.tied_embeddings(true);
  note_sizes(tree, d);
  const std::string path = "model.decoder";
  Module tables{path, "places", {}, {}, {}};
  const Quantity places = config.size("max_position_embeddings", 512);
  if (config.flag("use_learned_position_embeddings", true))
    tables.tensors.push_back(parameter("embed_positions.weight", {places + Quantity(2), d.hidden},
                                       Role::position_embedding, Part::embedding));
  if (config.flag("layernorm_embedding", true))
    add_norm(tables, "layernorm_embedding", d.hidden, Role::embedding_norm, true);
  Module layer = bart_layers(d, path, "layers", true);
  if (const auto width = config.optional_size("cross_attention_hidden_size"))
    widen_keys(layer.children[1], d, *width);
  tree.modules = {
      embedding(path + ".embed_tokens", d.vocabulary, d.hidden), std::move(tables), std::move(layer),
      output_head("output_projection", d.vocabulary, d.hidden, d.tied, path + ".embed_tokens.weight")};
  tree.attention.push_back(geometry(d.attention(), all_layers(d.layers)));
}

bool is_class_of(std::string_view name, Half half) {
  const bool writes =
      name.ends_with("ForCausalLM") || name.ends_with("LMHeadModel") || name.ends_with("GenerationDecoder");
  const bool reads = name.ends_with("Model") || name.ends_with("GenerationEncoder");
  return half == Half::decoder ? writes : reads && !writes;
}

// Whether a class is named after the type: UniSpeechSatModel of "unispeech-sat", where a family has several.
bool is_named_after(std::string_view name, std::string_view type) {
  std::string stem;
  for (const char c : type) {
    if (c != '-' && c != '_') stem += c;
  }
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower == stem + "model" || lower == stem + "forcausallm" || lower == stem + "lmheadmodel";
}

// As AutoModel, AutoModelForTextEncoding and AutoModelForCausalLM choose it. "": the family has no such class.
std::string_view class_of(const Family& family, std::string_view type, Half half) {
  const auto& names = family.architectures;
  const auto of_words = std::find_if(names.begin(), names.end(),
                                     [](std::string_view name) { return name.ends_with("EncoderModel"); });
  if (half == Half::text_encoder && of_words != names.end()) return *of_words;
  std::string_view first;
  for (const std::string_view name : names) {
    if (!is_class_of(name, half)) continue;
    if (is_named_after(name, type)) return name;
    if (first.empty()) first = name;
  }
  return first;
}

const Family* family_of_type(std::string_view type) {
  const auto is_of = [&](const Family* family) {
    return std::find(family->model_types.begin(), family->model_types.end(), type) !=
           family->model_types.end();
  };
  const auto families = all_families();
  const auto found = std::find_if(families.begin(), families.end(), is_of);
  return found == families.end() ? nullptr : *found;
}

void name_behind(Module& module, const std::string& prefix) {
  for (TensorSpec& spec : module.tensors) {
    if (!spec.same_as.empty()) spec.same_as.insert(0, prefix);
  }
  for (Module& child : module.children) name_behind(child, prefix);
}

}  // namespace

ModuleTree describe_half(ConfigReader& config, ModuleTree& whole, const std::string& key, Half half,
                         const std::string& path) {
  const std::string& behind = path.empty() ? key : path;
  const auto section = config.config().section(key);
  config.require(section.has_value(), key + " is missing");
  const std::string type = ConfigReader(*section, key).text("model_type", "");
  const Family* family = family_of_type(type);
  const std::string_view name = family == nullptr ? "" : class_of(*family, type, half);
  const bool composed = name.find("EncoderDecoderModel") != std::string_view::npos;
  if (name.empty() || composed)
    config.fail(fmt::format("{}.model_type \"{}\" is of no family known that {}", key, type,
                            half == Half::decoder ? "writes by itself" : "reads by itself"));
  const ModelConfig own = section->with_architecture(std::string(name));
  ConfigReader reader(own, family->name);
  ModuleTree tree;
  family->describe(reader, tree);
  for (auto* part : {&tree.modules, &tree.towers}) {
    for (Module& module : *part) {
      name_behind(module, behind + ".");
      module.path = module.path.empty() ? behind : behind + "." + module.path;
    }
  }
  for (DefaultTaken taken : reader.defaults_taken()) {
    taken.key = key + "." + taken.key;
    whole.defaults.push_back(std::move(taken));
  }
  return tree;
}

namespace {

// What was read is as wide as a decoder that does not say otherwise, or is made so.
void add_matrix_between(ConfigReader& config, ModuleTree& tree, const ModuleTree& encoder,
                        const ModuleTree& decoder, bool hears) {
  const auto said = [&](const char* half, const char* key) -> std::optional<std::uint64_t> {
    const auto section = config.config().section(half);
    return ConfigReader(*section, half).optional_number(key);
  };
  if (said("decoder", "cross_attention_hidden_size")) return;
  std::uint64_t made = encoder.hidden_size;
  if (hears) made = said("encoder", "output_hidden_size").value_or(made);
  if (made == decoder.hidden_size) return;
  Module projector{"", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("enc_to_dec_proj", {"encoder.hidden_size", encoder.hidden_size},
              {"decoder.hidden_size", decoder.hidden_size}, true);
  add_tower(tree, std::move(projector));
}

void describe_composed(ConfigReader& config, ModuleTree& tree, bool reads_text, bool hears = false) {
  ModuleTree encoder = describe_half(config, tree, "encoder", Half::encoder);
  ModuleTree decoder = describe_half(config, tree, "decoder", Half::decoder);
  add_matrix_between(config, tree, encoder, decoder, hears);
  auto& read = reads_text ? tree.modules : tree.towers;
  for (auto* part : {&encoder.modules, &encoder.towers})
    std::move(part->begin(), part->end(), std::back_inserter(read));
  std::move(decoder.modules.begin(), decoder.modules.end(), std::back_inserter(tree.modules));
  std::move(decoder.towers.begin(), decoder.towers.end(), std::back_inserter(tree.towers));
  tree.hidden_size = decoder.hidden_size, tree.vocabulary = decoder.vocabulary;
  tree.layers = reads_text ? std::max(encoder.layers, decoder.layers) : decoder.layers;
  tree.tied_embeddings = decoder.tied_embeddings;
  tree.experts = decoder.experts, tree.experts_per_token = decoder.experts_per_token;
  tree.attention = std::move(decoder.attention), tree.recurrent = std::move(decoder.recurrent);
  tree.not_counted = std::move(decoder.not_counted);
}

void describe_text_pair(ConfigReader& config, ModuleTree& tree) {
  describe_composed(config, tree, true);
}
void describe_page_reader(ConfigReader& config, ModuleTree& tree) {
  describe_composed(config, tree, false);
}
void describe_sound_reader(ConfigReader& config, ModuleTree& tree) {
  describe_composed(config, tree, false, true);
}

constexpr std::string_view kTrocrDecoderArchitectures[] = {"TrOCRForCausalLM"},
                           kTrocrDecoderTypes[] = {"trocr"},
                           kTextPairArchitectures[] = {"EncoderDecoderModel"},
                           kTextPairTypes[] = {"encoder-decoder"},
                           kPageReaderArchitectures[] = {"VisionEncoderDecoderModel"},
                           kPageReaderTypes[] = {"vision-encoder-decoder"},
                           kSoundReaderArchitectures[] = {"SpeechEncoderDecoderModel"},
                           kSoundReaderTypes[] = {"speech-encoder-decoder"};

}  // namespace

const Family kTrocrDecoder = {
    "trocr_decoder",       "TrOCR's decoder", kTrocrDecoderArchitectures, kTrocrDecoderTypes, {},
    describe_trocr_decoder};
const Family kTextPair = {"encoder_decoder",
                          "an encoder and a decoder of text (BERT2BERT)",
                          kTextPairArchitectures,
                          kTextPairTypes,
                          {},
                          describe_text_pair};
const Family kTrocr = {"trocr", "TrOCR, Donut",      kPageReaderArchitectures, kPageReaderTypes,
                       {},      describe_page_reader};
const Family kSoundReader = {"speech_encoder_decoder",
                             "an encoder of sound and a decoder of text",
                             kSoundReaderArchitectures,
                             kSoundReaderTypes,
                             {},
                             describe_sound_reader};

}  // namespace assay::families
