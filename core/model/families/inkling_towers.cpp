// Inkling beside its language model: an image goes through matrices that fold ever larger patches into channels, sound
// is looked up bin by bin.
#include <cmath>
#include <limits>
#include <utility>

#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"

namespace assay::families {

using namespace blocks;

namespace {

// Frames, pixels along each side and channels of what a patch is folded into.
struct FoldedPatch {
  std::uint64_t frames = 1, side = 1, channels;
};

std::vector<std::uint64_t> falling_prime_factors(std::uint64_t number) {
  std::vector<std::uint64_t> factors;
  for (std::uint64_t p = 2; p * p <= number; ++p) {
    for (; number % p == 0; number /= p) factors.insert(factors.begin(), p);
  }
  if (number > 1) factors.insert(factors.begin(), number);
  return factors;
}

// One after the other by a prime factor larger, the sides first. Channels are whole 64s; where frames are folded, too,
// as many 64s as the patch has numbers, as the class computes them.
std::vector<FoldedPatch> foldings(std::uint64_t patch, std::uint64_t frames, std::uint64_t channels) {
  std::vector<FoldedPatch> steps = {{1, 1, channels}};
  std::uint64_t side = 1, folded = 1;
  for (const std::uint64_t factor : falling_prime_factors(patch)) {
    side *= factor;
    steps.push_back({1, side, (side * side * channels + 63) / 64 * 64});
  }
  for (const std::uint64_t factor : falling_prime_factors(frames)) {
    folded *= factor;
    steps.push_back({folded, side, side * side * channels * folded * 64});
  }
  return steps;
}

// Which folding each layer begins with (and what the last gives): numbers that a patch holds should grow evenly. Of more
// layers than foldings each takes the nearest; of fewer each one of its own, with the least deviation altogether.
std::vector<std::size_t> folding_of_layers(const std::vector<FoldedPatch>& steps, std::uint64_t layers,
                                           double numbers) {
  const auto deviation = [&](std::uint64_t row, std::size_t step) {
    const auto pixels = static_cast<double>(steps[step].frames * steps[step].side * steps[step].side);
    return std::abs(std::log(numbers) * static_cast<double>(row) / static_cast<double>(layers) -
                    std::log(pixels));
  };
  std::vector<std::size_t> chosen(layers + 1);
  if (layers >= steps.size()) {
    for (std::uint64_t row = 0; row <= layers; ++row) {
      for (std::size_t step = 1; step < steps.size(); ++step)
        if (deviation(row, step) < deviation(row, chosen[row])) chosen[row] = step;
    }
  } else {  // the best for the first rows with each set of steps taken
    const std::size_t sets = std::size_t{1} << steps.size();
    std::vector<double> cost(sets, std::numeric_limits<double>::infinity());
    std::vector<std::size_t> last(sets);
    cost[0] = 0;
    std::size_t best = 0;
    for (std::size_t set = 0; set < sets; ++set) {
      const auto row = static_cast<std::uint64_t>(__builtin_popcountll(set));
      if (row == layers + 1 && (best == 0 || cost[set] < cost[best])) best = set;
      if (row > layers) continue;
      for (std::size_t step = 0; step < steps.size(); ++step) {
        const std::size_t with = set | std::size_t{1} << step;
        if (with == set || !(cost[set] + deviation(row, step) < cost[with])) continue;
        cost[with] = cost[set] + deviation(row, step);
        last[with] = step;
      }
    }
    for (std::size_t row = layers + 1, set = best; row-- > 0; set &= ~(std::size_t{1} << last[set]))
      chosen[row] = last[set];
  }
  chosen.front() = 0;
  chosen.back() = steps.size() - 1;
  return chosen;
}

// Gate and up of each layer's experts and MLP lie row by row in one tensor.
void fuse_gates(Module& module) {
  for (std::size_t i = 0; i < module.tensors.size(); ++i) {
    TensorSpec& spec = module.tensors[i];
    if (spec.role == Role::mlp_gate_up) spec.parallel.interleaved = true;
    if (spec.role != Role::mlp_gate) continue;
    const auto up = module.tensors.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    spec.role = Role::mlp_gate_up;
    spec.elements = Quantity(2) * spec.elements;
    spec.shape[spec.parallel.dimension] *= 2;
    spec.parallel.members.push_back(up->parallel.members.front());
    spec.parallel.interleaved = true;
    module.tensors.erase(up);
  }
  for (Module& child : module.children) fuse_gates(child);
}

// From transformers' names to those that are published, in this order.
constexpr std::pair<std::string_view, std::string_view> kPublished[] = {
    {"model.embed_tokens.embed_norm", "model.llm.embed_norm"},
    {"model.embed_tokens", "model.llm.embed"},
    {"lm_head", "model.llm.unembed"},
    {"model.norm", "model.llm.norm"},
    {"model.layers.", "model.llm.layers."},
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "mlp_norm"},
    {"sconv.conv1d", "sconv"},
    {"self_attn", "attn"},
    {"q_proj", "wq_du"},
    {"k_proj", "wk_dv"},
    {"v_proj", "wv_dv"},
    {"o_proj", "wo_ud"},
    {"r_proj", "wr_du"},
    {"e_score_correction_bias", "bias"},
    {"shared_experts.gate_proj", "shared_experts.shared_w13_weight"},
    {"shared_experts.down_proj", "shared_experts.shared_w2_weight"},
    {"experts.gate_up_proj", "experts.w13_weight"},
    {"experts.down_proj", "experts.w2_weight"},
    {"mlp.gate_proj", "mlp.w13_dn"},
    {"mlp.down_proj", "mlp.w2_md"}};

void name_as_published(Module& module) {
  const auto change = [](std::string& name) {
    for (const auto& [from, to] : kPublished) {
      if (const std::size_t at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
    }
  };
  change(module.path);
  for (TensorSpec& spec : module.tensors) change(spec.name);
  for (Module& child : module.children) name_as_published(child);
}

}  // namespace

void add_inkling_towers(ConfigReader& document, ModuleTree& tree) {
  for (Module& module : tree.modules) fuse_gates(module), name_as_published(module);
  const Quantity out = text_width(tree);
  if (TowerConfig audio(document, tree, "audio_config"); audio) {
    Module tower{"model.audio", "audio tower", {}, {}, {}};
    Tower(tower, Part::audio)
        .tensor("encoder.weight", {audio->size("n_mel_bins|num_codebooks", 80) *
                                       audio->size("mel_vocab_size|codebook_size", 256),
                                   out})
        .norm("final_norm", out, false);
    add_tower(tree, std::move(tower));
  }
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  const std::uint64_t patch = vision->size("patch_size", 40).value();
  const std::uint64_t frames = vision->size("temporal_patch_size", 2).value();
  const std::uint64_t channels = vision->size("num_channels", 3).value();
  const std::uint64_t count = vision->size("n_layers|num_hidden_layers", 24).value();
  vision->require(patch <= 4096 && frames <= 64 && channels <= 4096 && count <= 4096,
                  "an image is folded into more than any model has");
  const auto steps = foldings(patch, frames, channels);
  const auto chosen = folding_of_layers(steps, count, static_cast<double>(patch * patch * frames * channels));
  Module tower{"model.visual", "vision tower", {}, {}, {}};
  Tower tensors(tower, Part::vision);
  for (std::uint64_t i = 0; i < count; ++i) {
    const FoldedPatch &from = steps[chosen[i]], &to = steps[chosen[i + 1]];
    const std::uint64_t side = to.side / from.side, joined = to.frames / from.frames * side * side;
    const bool ends = i + 1 == count;
    const Quantity given = ends ? out : Quantity(to.channels);
    tensors.matrix("layers.linear_" + std::to_string(i), from.channels * joined, given, false);
    if (!ends) tensors.norm("layers.norm_" + std::to_string(i), given, false);
  }
  tensors.norm("final_norm", out, false);
  add_tower(tree, std::move(tower));
}

}  // namespace assay::families
