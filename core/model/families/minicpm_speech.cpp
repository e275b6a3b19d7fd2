// What MiniCPM-o speaks with, told by the language model's hidden states: a Llama over text and codes. 2.6's (ChatTTS) has four
// codes a frame, and the autoencoder (DVAE) that makes a spectrum of them, of sizes which the code has and no config tells;
// 4.5's has one. Sources: the authors' modeling_minicpmo.py (ConditionalChatTTS, MiniCPMTTS), vLLM-Omni's loading of it, and
// vector_quantize_pytorch (GroupedResidualFSQ).
#include "core/model/families/minicpm_speech.h"

#include "core/model/families/sighted_parts.h"
#include "core/model/families/small_decoders.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr std::uint64_t kLlamaVocabulary = 32000;  // LlamaConfig's own: a table that nothing looks up
constexpr std::uint64_t kGroups = 2, kLevels = 4;  // of what a frame is quantized to

// Two convolutions, twelve of ConvNeXt's blocks, and one.
void add_dvae_half(Tower& tower, const std::string& path, const Quantity& out) {
  const Quantity in = 512, narrow = 128, hidden = 256;
  tower.tensor(path + ".conv_in.0.weight", {narrow, in, 3})
      .tensor(path + ".conv_in.0.bias", {narrow})
      .tensor(path + ".conv_in.2.weight", {hidden, narrow, 3})
      .tensor(path + ".conv_in.2.bias", {hidden})
      .tensor(path + ".conv_out.weight", {out, hidden, 1});
  for (int i = 0; i < 12; ++i) {
    const std::string block = path + ".decoder_block." + std::to_string(i);
    tower.tensor(block + ".dwconv.weight", {hidden, 1, 7})
        .tensor(block + ".dwconv.bias", {hidden})
        .norm(block + ".norm", hidden, true)
        .matrix(block + ".pwconv1", hidden, Quantity(4) * hidden, true)
        .matrix(block + ".pwconv2", Quantity(4) * hidden, hidden, true)
        .tensor(block + ".coef", {hidden});
  }
}

Module dvae() {
  const Quantity mels = 100, hidden = 512, whole = 1024;
  Module module{"tts.dvae", "codes to spectrum (DVAE)", {}, {}, {}};
  Tower tower(module, Part::audio);
  tower.tensor("coef", {1, mels, 1})
      .tensor("downsample_conv.0.weight", {hidden, mels, 3})
      .tensor("downsample_conv.0.bias", {hidden})
      .tensor("downsample_conv.2.weight", {hidden, hidden, 4})
      .tensor("downsample_conv.2.bias", {hidden})
      .tensor("out_conv.weight", {mels, hidden, 3});
  add_dvae_half(tower, "encoder", whole);
  add_dvae_half(tower, "decoder", hidden);
  for (std::uint64_t group = 0; group < kGroups; ++group) {
    const std::string path = "vq_layer.quantizer.rvqs." + std::to_string(group);
    tower.matrix(path + ".project_in", Quantity(1024 / kGroups), Quantity(kLevels), true)
        .matrix(path + ".project_out", Quantity(kLevels), Quantity(1024 / kGroups), true);
  }
  return module;
}

// What leads from the language model's hidden states.
void add_speech_projector(Tower& tower, const std::string& path, const Quantity& in, const Quantity& out,
                          bool mlp) {
  if (!mlp) {
    tower.matrix(path, in, out, false);
    return;
  }
  tower.matrix(path + ".linear1", in, out, true).matrix(path + ".linear2", out, out, true);
}

// The Llama, its tables and its heads, whose weight is kept as a length a row and a direction (torch's weight_norm).
struct SpeechClass {
  std::uint64_t codes, books;
};
Module speech_model(ConfigReader& config, const SpeechClass& of) {
  const Decoder d = read_small_decoder(
      config, {.vocabulary = 0, .hidden = 768, .intermediate = 3072, .layers = 20, .heads = 12});
  const Quantity codes = config.size("num_audio_tokens", of.codes);
  Module speaks{"tts", "what speaks (a Llama)", {}, {}, {}};
  Tower(speaks, Part::audio)
      .tensor("emb_text.weight", {config.size("num_text_tokens", 21178), d.hidden})
      .tensor("model.embed_tokens.weight", {Quantity(kLlamaVocabulary), d.hidden})
      .norm("model.norm", d.hidden, false);
  const auto books = all_layers(read_layers(config, "num_vq", of.books));
  Module tables = layers("emb_code.{layer}", "tables of codes", books);
  Tower(tables, Part::audio).tensor("weight", {codes, d.hidden});
  Module heads = layers("head_code.{layer}.parametrizations.weight", "heads", books);
  Tower(heads, Part::audio).tensor("original0", {codes, 1}).tensor("original1", {codes, d.hidden});
  speaks.children = {small_llama(d, "model.layers.{layer}", {}), std::move(tables), std::move(heads)};
  return speaks;
}

}  // namespace

void add_minicpm_speech(ConfigReader& document, ModuleTree& tree, std::string_view version) {
  TowerConfig tts(document, tree, "tts_config");
  if (!tts) {
    tree.not_counted.push_back({"what it speaks with: tts_config does not describe it", std::nullopt});
    return;
  }
  const bool first = version == "2.6";
  Module speaks = speech_model(*tts, {.codes = first ? 626U : 4097U, .books = first ? 4U : 1U});
  Tower tower(speaks, Part::audio);
  const Quantity read = tts->size("llm_dim", 2560), hidden = tts->size("hidden_size", 768);
  if (first) {
    add_speech_projector(tower, "projector", read, hidden, tts->flag("use_mlp", true));
    add_tower(tree, std::move(speaks));
    add_tower(tree, dvae());
    return;
  }
  const std::string kind = tts->text("projector_type", "mlp");
  document.require(kind == "mlp" || kind == "default",
                   "projector_type of tts_config is neither mlp nor default");
  for (const std::string of : {"projector_spk", "projector_semantic"})
    add_speech_projector(tower, of, read, hidden, kind == "mlp");
  add_tower(tree, std::move(speaks));
  tree.not_counted.push_back({"what makes sound of codes, in a folder of its own (token2wav)", std::nullopt});
}

}  // namespace assay::families
