// A Parakeet by itself, which hears: with a head that tells a letter a frame (CTC), or with LSTMs that remember what was written
// and a net that joins both (RNN-T), which may tell, too, how many frames to skip (TDT). Source: transformers 5.24.
#include "core/model/families/all_speakers.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr ParakeetClass kParakeetAlone = {.attention_bias = true};

// The encoder, into the tree's modules; gives its width.
Quantity add_parakeet_alone(ConfigReader& config, ModuleTree& tree) {
  TowerConfig encoder(config, tree, "encoder_config");
  config.require(static_cast<bool>(encoder), "encoder_config is missing, which tells the encoder's sizes");
  tree.modules.push_back(parakeet_encoder(*encoder, "encoder", kParakeetAlone));
  Quantity hidden = encoder->size("hidden_size", kParakeetAlone.hidden);
  tree.hidden_size = hidden.value();
  tree.layers = read_layers(*encoder, "num_hidden_layers", kParakeetAlone.layers).value();
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

void describe_transducer(ConfigReader& config, ModuleTree& tree, const Quantity& skips) {
  const Quantity hidden = add_parakeet_alone(config, tree), letters = config.size("vocab_size", 8193),
                 width = config.size("decoder_hidden_size", 640);
  tree.modules.push_back(remembering(config, letters, width));
  Module joins{"", "what joins both", {}, {}, {}};
  Tower(joins, Part::output)
      .matrix("encoder_projector", hidden, width, true)
      .matrix("joint.head", width, skips.value() == 0 ? letters : letters + skips, true);
  tree.modules.push_back(std::move(joins));
}
void describe_parakeet_rnnt(ConfigReader& config, ModuleTree& tree) {
  describe_transducer(config, tree, 0);
}
void describe_parakeet_tdt(ConfigReader& config, ModuleTree& tree) {
  const auto durations = config.numbers("durations");
  describe_transducer(config, tree, Quantity("durations", durations ? durations->size() : 5));
}

constexpr std::string_view kCtcArchitectures[] = {"ParakeetForCTC"}, kCtcTypes[] = {"parakeet_ctc"},
                           kRnntArchitectures[] = {"ParakeetForRNNT"}, kRnntTypes[] = {"parakeet_rnnt"},
                           kTdtArchitectures[] = {"ParakeetForTDT"}, kTdtTypes[] = {"parakeet_tdt"};

}  // namespace

const Family kParakeetCtc = {"parakeet_ctc",       "Parakeet (CTC)", kCtcArchitectures, kCtcTypes, {},
                             describe_parakeet_ctc};
const Family kParakeetRnnt = {"parakeet_rnnt",       "Parakeet (RNN-T)", kRnntArchitectures, kRnntTypes, {},
                              describe_parakeet_rnnt};
const Family kParakeetTdt = {"parakeet_tdt",       "Parakeet (TDT)", kTdtArchitectures, kTdtTypes, {},
                             describe_parakeet_tdt};

}  // namespace assay::families
