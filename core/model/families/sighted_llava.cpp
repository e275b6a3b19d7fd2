// LLaVA as its own code saves it (1.5, 1.6, OneVision, FastVLM): the language model's keys and those of what sees ("mm_…")
// in one flat config. Names as SGLang 0.5.23 loads them (models/llava.py).
#include "core/model/families/sighted_own_code.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/tower_blocks.h"
#include "core/system/text.h"

namespace assay::families {
namespace {

using namespace blocks;

// "linear" is one matrix; "mlp2x_gelu" two with an activation between, in a list.
std::uint64_t projector_depth(ConfigReader& document) {
  constexpr std::uint64_t kDeepest = 16;
  const std::string told = document.text("mm_projector_type", "linear");
  if (told == "linear") return 1;
  std::string_view type = told;
  const bool list = type.starts_with("mlp") && type.ends_with("x_gelu");
  if (list) type = type.substr(3, type.size() - 3 - 6);
  const auto depth = list ? parse_u64(type) : std::nullopt;
  document.require(depth && *depth >= 1 && *depth <= kDeepest,
                   "mm_projector_type is neither linear nor mlp2x_gelu");
  return *depth;
}

}  // namespace

std::string_view llava_own_text(const ModelConfig& config) {
  const std::string& name = config.architecture().empty() ? config.model_type() : config.architecture();
  if (name.find("istral") != std::string::npos) return "mistral";
  if (name.find("wen") != std::string::npos) return "qwen2";
  return "llama";
}

// The image encoder is told by its name alone ("openai/clip-vit-large-patch14-336"): it has a config of its own.
void add_llava_own(ConfigReader& document, ModuleTree& tree) {
  const Quantity seen = document.size("mm_hidden_size", 1024), out = text_width(tree);
  const std::uint64_t depth = projector_depth(document);
  const bool alone = document.text("mm_projector_type", "linear") == "linear";
  Module projector{alone ? "model" : "model.mm_projector", "projector", {}, {}, {}};
  Tower into(projector, Part::projector);
  if (alone) into.matrix("mm_projector", seen, out, true);
  for (std::uint64_t i = 0; !alone && i < depth; ++i)
    into.matrix(std::to_string(2 * i), i == 0 ? seen : out, out, true);
  add_tower(tree, std::move(projector));
  if (document.text("mm_patch_merge_type", "flat").find("unpad") != std::string::npos)
    add_bare(tree, "model.image_newline", {out});
  tree.not_counted.push_back(
      {"the image encoder, which mm_vision_tower names and does not describe", std::nullopt});
}

}  // namespace assay::families
