// A Parakeet by itself, which hears: with a head that tells a letter a frame (CTC), or with LSTMs that remember what was written
// and a net that joins both (RNN-T), which may tell, too, how many frames to skip (TDT); Nemotron's, which hears while one
// speaks. Source: transformers 5.24.
#include "core/model/families/all_speakers.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr ParakeetClass kParakeetAlone = {.attention_bias = true},
                        kParakeetLive = {.attention_bias = true, .streams = true};

// The encoder, into the tree's modules; gives its width.
Quantity add_parakeet_alone(ConfigReader& config, ModuleTree& tree,
                            const ParakeetClass& of = kParakeetAlone) {
  TowerConfig encoder(config, tree, "encoder_config");
  config.require(static_cast<bool>(encoder), "encoder_config is missing, which tells the encoder's sizes");
  tree.modules.push_back(parakeet_encoder(*encoder, "encoder", of));
  Quantity hidden = encoder->size("hidden_size", of.hidden);
  tree.hidden_size = hidden.value();
  tree.layers = read_layers(*encoder, "num_hidden_layers", of.layers).value();
  return hidden;
}

void describe_parakeet_ctc(ConfigReader& config, ModuleTree& tree) {
  const Quantity hidden = add_parakeet_alone(config, tree), letters = config.size("vocab_size", 1025);
  Module head{"ctc_head", "head", {}, {}, {}};
  Tower(head, Part::output).tensor("weight", {letters, hidden, 1}).tensor("bias", {letters});
  tree.modules.push_back(std::move(head));
}

// LSTMs of one width: four gates of what comes in, and of what they hold.
Module remembering(ConfigReader& config, const Quantity& letters, const Quantity& width) {
  Module decoder{"decoder", "what remembers", {}, {}, {}};
  Tower tower(decoder, Part::output);
  tower.tensor("embedding.weight", {letters, width}).matrix("decoder_projector", width, width, true);
  const Quantity gates = Quantity(4) * width, count = read_layers(config, "num_decoder_layers", 2);
  for (std::uint64_t i = 0; i < count.value(); ++i) {
    for (const std::string side : {"ih_l", "hh_l"})
      tower.tensor("lstm.weight_" + side + std::to_string(i), {gates, width})
          .tensor("lstm.bias_" + side + std::to_string(i), {gates});
  }
  return decoder;
}

struct Transducer {
  ParakeetClass encoder = kParakeetAlone;
  std::uint64_t letters = 8193;
  Quantity skips = 0;  // how many frames it may skip
};

Quantity describe_transducer(ConfigReader& config, ModuleTree& tree, const Transducer& of) {
  const Quantity hidden = add_parakeet_alone(config, tree, of.encoder),
                 letters = config.size("vocab_size", of.letters),
                 width = config.size("decoder_hidden_size", 640);
  tree.modules.push_back(remembering(config, letters, width));
  Module joins{"", "what joins both", {}, {}, {}};
  Tower(joins, Part::output)
      .matrix("encoder_projector", hidden, width, true)
      .matrix("joint.head", width, of.skips.value() == 0 ? letters : letters + of.skips, true);
  tree.modules.push_back(std::move(joins));
  return hidden;
}
void describe_parakeet_rnnt(ConfigReader& config, ModuleTree& tree) {
  describe_transducer(config, tree, {});
}
void describe_parakeet_tdt(ConfigReader& config, ModuleTree& tree) {
  const auto durations = config.numbers("durations");
  describe_transducer(config, tree, {.skips = Quantity("durations", durations ? durations->size() : 5)});
}
void describe_nemotron_live(ConfigReader& config, ModuleTree& tree) {
  describe_transducer(config, tree, {.encoder = kParakeetLive, .letters = 1025});
}

// Told which language it hears by a vector with one 1, beside each frame.
void describe_nemotron_prompted(ConfigReader& config, ModuleTree& tree) {
  const Quantity hidden = describe_transducer(config, tree, {.encoder = kParakeetLive, .letters = 13088});
  const Quantity between = config.size("prompt_intermediate_size", 2048);
  Module prompts{"prompt_projector", "what is told beside frames", {}, {}, {}};
  Tower(prompts, Part::audio)
      .matrix("linear_1", hidden + config.size("num_prompts", 128), between, true)
      .matrix("linear_2", between, hidden, true);
  tree.modules.push_back(std::move(prompts));
}

constexpr std::string_view kCtcArchitectures[] = {"ParakeetForCTC"}, kCtcTypes[] = {"parakeet_ctc"},
                           kRnntArchitectures[] = {"ParakeetForRNNT"}, kRnntTypes[] = {"parakeet_rnnt"},
                           kTdtArchitectures[] = {"ParakeetForTDT"}, kTdtTypes[] = {"parakeet_tdt"},
                           kLiveArchitectures[] = {"NemotronAsrStreamingForRNNT"},
                           kLiveTypes[] = {"nemotron_asr_streaming"},
                           kPromptedArchitectures[] = {"Nemotron3_5AsrForRNNT"},
                           kPromptedTypes[] = {"nemotron3_5_asr"};

}  // namespace

const Family kParakeetCtc = {"parakeet_ctc",       "Parakeet (CTC)", kCtcArchitectures, kCtcTypes, {},
                             describe_parakeet_ctc};
const Family kParakeetRnnt = {"parakeet_rnnt",       "Parakeet (RNN-T)", kRnntArchitectures, kRnntTypes, {},
                              describe_parakeet_rnnt};
const Family kParakeetTdt = {"parakeet_tdt",       "Parakeet (TDT)", kTdtArchitectures, kTdtTypes, {},
                             describe_parakeet_tdt};
const Family kNemotronAsrStreaming = {
    "nemotron_asr_streaming", "Nemotron ASR, streaming", kLiveArchitectures, kLiveTypes, {},
    describe_nemotron_live};
const Family kNemotron35Asr = {
    "nemotron3_5_asr",         "Nemotron 3.5 ASR", kPromptedArchitectures, kPromptedTypes, {},
    describe_nemotron_prompted};

}  // namespace assay::families
