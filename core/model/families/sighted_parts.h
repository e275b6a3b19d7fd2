// What the descriptions of models that see (sighted*.cpp) share, and those that fill a file of their own.
#pragma once

#include <optional>
#include <string>

#include "core/model/blocks.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

// The language model's, into which projectors lead.
Quantity text_width(const ModuleTree& tree);
void add_tower(ModuleTree& tree, Module module);
// Of the language model's tensors, whose names are complete: those that begin so.
void rename(Module& module, std::string_view from, std::string_view to);
void rename(ModuleTree& tree, std::string_view from, std::string_view to);
// One tensor of a projector that belongs to no module ("image_newline").
void add_bare(ModuleTree& tree, const std::string& name, const std::vector<Quantity>& shape);
// linear_1, linear_2.
Module two_matrices(std::string path, const Quantity& in, const Quantity& between, const Quantity& out,
                    bool bias);
// The encoder that vision_config.model_type names. False: no description of it.
bool add_encoder(ConfigReader& vision, ModuleTree& tree, const std::string& path,
                 std::string_view class_default);

// sighted_queries.cpp: an image reaches the language model through queries that were learnt.
void add_aria(ConfigReader& document, ModuleTree& tree);
void add_blip2(ConfigReader& document, ModuleTree& tree);
void add_instructblip(ConfigReader& document, ModuleTree& tree);
// A BERT over queries, some of whose layers attend to what is seen; with words it has embeddings and MLPs of its own.
Module q_former(ConfigReader& config, bool reads_words);
struct QFormer {
  Quantity hidden, wide, seen, depth;
  std::uint64_t every = 1;             // one layer of so many sees
  std::optional<Quantity> words = {};  // it reads words, too: so many, at so many places
  Quantity places = 0;
};
Module q_former(const QFormer& of);
void add_idefics2(ConfigReader& document, ModuleTree& tree);
// sighted_sam.cpp: SAM's encoder, alone or beside SigLIP.
// As its own code builds it, of patches of 16 pixels: one block in each quarter of it sees all.
struct OwnSam {
  std::uint64_t hidden, depth, heads;
  Quantity side;  // patches on a side
};
Module sam_of_sizes(const OwnSam& of, std::string path);
// As transformers has it (SamVisionConfig).
Module sam_encoder(ConfigReader& vision, std::string path);
// Likewise, of a class that says mlp_dim, with its defaults.
Module sam_encoder_of(ConfigReader& vision, std::string path, std::uint64_t wide, std::uint64_t image);
// Two convolutions and their norms, numbered.
void add_counted_neck(blocks::Tower into, const std::string& path, const Quantity& in, const Quantity& out);
void add_got_ocr2(ConfigReader& document, ModuleTree& tree);
void add_deepseek_vl(ConfigReader& document, ModuleTree& tree);
void add_deepseek_vl_hybrid(ConfigReader& document, ModuleTree& tree);
// sighted_intern.cpp
void add_internvl(ConfigReader& document, ModuleTree& tree);
void add_internvl_chat(ConfigReader& document, ModuleTree& tree);
// sighted_radio.cpp
void add_nemotron_omni(ConfigReader& document, ModuleTree& tree);
// sighted_2026.cpp
void add_minicpm_v(ConfigReader& document, ModuleTree& tree);
void add_ovis2(ConfigReader& document, ModuleTree& tree);
// sighted_perception.cpp
void add_perception(ConfigReader& document, ModuleTree& tree);
// emu3_vq.cpp
void add_emu3_vq(ConfigReader& document, ModuleTree& tree);
// sighted_fastvit.cpp
void add_fast_vlm(ConfigReader& document, ModuleTree& tree);
// sighted_granite.cpp
void add_granite_docling(ConfigReader& document, ModuleTree& tree);
void add_granite4_vision(ConfigReader& document, ModuleTree& tree);
// lfm3_vl.cpp, inkling_towers.cpp
void add_lfm3_vl(ConfigReader& document, ModuleTree& tree);
void add_inkling_towers(ConfigReader& document, ModuleTree& tree);
void add_inkling2_vision(ConfigReader& document, ModuleTree& tree);  // inkling2.cpp
// florence2.cpp, hy_v4_vision.cpp
void add_florence2(ConfigReader& document, ModuleTree& tree);
void add_hy_v4_vision(ConfigReader& document, ModuleTree& tree);
// mistral_vision.cpp
void add_mistral_vision(ConfigReader& config, ModuleTree& tree);
// parakeet.cpp: an encoder of sound, and its projector.
void add_parakeet(ConfigReader& audio, ModuleTree& tree);
struct ParakeetClass {
  std::uint64_t hidden = 1024, layers = 24, wide = 4096, bins = 80;
  bool attention_bias = false;
  bool streams = false;  // it never looks ahead: sides are filled, and no batch norm is there
};
Module parakeet_encoder(ConfigReader& audio, std::string path, const ParakeetClass& of);
// A convolution over a spectrum, then pairs of one within each channel and one across them: each but these halves it.
void add_halvings(blocks::Tower& tower, const std::string& path, const Quantity& channels,
                  const Quantity& side, std::uint64_t count);
// janus.cpp: it draws, too.
void add_janus(ConfigReader& document, ModuleTree& tree);

}  // namespace assay::families
