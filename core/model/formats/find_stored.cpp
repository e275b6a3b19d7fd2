#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "core/model/formats/format.h"
#include "core/model/stored_checks.h"

namespace assay {
namespace {

constexpr std::string_view kOfWeights = ".weight";

class Finder {
 public:
  Finder(const Checkpoint& checkpoint, const std::optional<QuantizationConfig>& quantization)
      : checkpoint_(checkpoint), resolution_(checkpoint, quantization) {}

  StoredTensors run() {
    check_method();
    check_transforms();
    collect();
    for (const std::string& weight : order_) resolve(weight, groups_[weight]);
    StoredTensors& result = resolution_.result;
    std::sort(result.tensors.begin(), result.tensors.end(),
              [](const LogicalTensor& a, const LogicalTensor& b) { return a.codes < b.codes; });
    for (const LogicalTensor& tensor : result.tensors) result.any_quantized |= tensor.quantized();
    check_auxiliary();
    return std::move(result);
  }

 private:
  const CheckpointTensor& stored(std::uint32_t place) const { return checkpoint_.tensors[place]; }

  void check_method() {
    const std::string_view method = resolution_.method();
    const bool known = std::any_of(stored_formats().begin(), stored_formats().end(), [&](const auto* format) {
      return std::find(format->methods.begin(), format->methods.end(), method) != format->methods.end();
    });
    if (method.empty() || known) return;
    resolution_.fault(
        "stored.method_unknown", "",
        fmt::format("quantization_config.quant_method is \"{}\", whose stored form is not known "
                    "here",
                    method));
  }

  // What the weights alone do not hold: rotations applied while the model runs, and bitmasks of sparse ones.
  void check_transforms() {
    const auto& quantization = resolution_.quantization();
    if (quantization && quantization->transforms_activations)
      resolution_.fault("stored.transformed", "",
                        "transform_config rotates activations while the model runs, and its weights are "
                        "meant for those: no other form holds them",
                        "use the checkpoint that was rotated");
    const bool sparse = quantization && !quantization->sparsity.empty() && quantization->sparsity != "dense";
    for (const CheckpointTensor& tensor : checkpoint_.tensors) {
      if (!tensor.name.ends_with(".bitmask")) continue;
      return resolution_.fault("stored.form_unknown", tensor.name,
                               "a bitmask of compressed-tensors' sparse weights, which are not read here",
                               "decompress the checkpoint with llm-compressor first");
    }
    if (sparse && quantization->sparsity.find("bitmask") != std::string::npos)
      resolution_.fault("stored.method_unknown", "",
                        fmt::format("sparsity_config.format is \"{}\", whose stored form is not known here",
                                    quantization->sparsity));
  }

  // Inside a quantized linear layer nothing is ignored: what stands there and is not known may well be a part
  // of its weight (a low-rank residual, a rotation).
  void check_auxiliary() {
    std::unordered_set<std::string_view> modules;
    for (const LogicalTensor& tensor : resolution_.result.tensors) {
      if (tensor.quantized() && tensor.form.kind != FormKind::plain && tensor.name.ends_with(kOfWeights))
        modules.insert(std::string_view(tensor.name).substr(0, tensor.name.size() - kOfWeights.size()));
    }
    std::vector<std::pair<std::string, std::string>> unknown;  // module, tensor
    for (const LogicalTensor& tensor : resolution_.result.tensors) {
      if (tensor.quantized() || is_known_beside(tensor.name)) continue;
      const std::string_view name = tensor.name;
      for (auto dot = name.rfind('.'); dot != std::string_view::npos && dot > 0;
           dot = name.rfind('.', dot - 1)) {
        if (!modules.contains(name.substr(0, dot))) continue;
        unknown.emplace_back(name.substr(0, dot), name);
        break;
      }
    }
    for (const auto& [module, name] : unknown)
      resolution_.fault("stored.auxiliary_unknown", name,
                        fmt::format("stands inside {}, whose weight is quantized, and what it does there is "
                                    "not known here",
                                    module),
                        "convert it with the tool that made it");
  }

  // Biases, factors of the cache of keys and values, and what routers choose by.
  static bool is_known_beside(std::string_view name) {
    static constexpr std::array<std::string_view, 4> kEndings = {".bias", ".k_bias", ".v_bias",
                                                                 ".e_score_correction_bias"};
    const bool ends = std::any_of(kEndings.begin(), kEndings.end(),
                                  [&](std::string_view ending) { return name.ends_with(ending); });
    return ends || is_known_buffer(name) || parse_stored_name(name).has_value();
  }

  StoredGroup& group_of(const std::string& weight) {
    const auto [at, is_new] = groups_.try_emplace(weight);
    if (is_new) order_.push_back(weight);
    return at->second;
  }

  void collect() {
    groups_.reserve(checkpoint_.tensors.size());
    for (std::uint32_t i = 0; i < checkpoint_.tensors.size(); ++i) {
      const std::string& name = stored(i).name;
      const NameEnding* ending = ending_of(name);
      const std::string weight = ending == nullptr ? std::string() : weight_name(name, *ending);
      if (ending != nullptr && is_believed(*ending, weight) && !is_of_router(name))
        group_of(weight).pieces.push_back({ending->suffix.substr(1), i, ending});
      else
        group_of(name).plain = i;
    }
  }

  bool is_believed(const NameEnding& ending, const std::string& weight) const {
    switch (ending.belief) {
      case NameEnding::Belief::always: return true;
      case NameEnding::Belief::beside_a_weight: return has_codes(weight);
      case NameEnding::Belief::beside_codes: break;
    }
    const CheckpointTensor* codes = checkpoint_.find(weight);
    return codes != nullptr && needs_scale(codes->type);
  }

  // Some mixtures have parameters of the names that llama.cpp has for factors on a weight: what routers multiply their
  // inputs by, and, in layers with such a router, experts their outputs (Gemma 4).
  bool is_of_router(const std::string& name) const {
    constexpr std::string_view kRouter = "ffn_gate_inp.scale", kExperts = "ffn_down_exps.scale";
    if (!checkpoint_.gguf) return false;
    if (name.ends_with(kRouter)) return true;
    return name.ends_with(kExperts) &&
           checkpoint_.find(name.substr(0, name.size() - kExperts.size()) + std::string(kRouter)) != nullptr;
  }

  bool has_codes(const std::string& weight) const {
    if (checkpoint_.find(weight) != nullptr) return true;
    if (!weight.ends_with(".weight")) return false;
    return checkpoint_.find(weight.substr(0, weight.size() - 6) + "qweight") != nullptr;
  }

  void resolve(const std::string& weight, const StoredGroup& group) {
    const StoredPiece* codes = group.codes();
    if (!group.plain && codes == nullptr) return without_codes(weight, group);
    LogicalTensor tensor;
    tensor.name = weight;
    tensor.codes = group.plain ? *group.plain : codes->place;
    for (const StoredPiece& piece : group.pieces) {
      if (piece.ending->of_activations) tensor.auxiliary.push_back(piece.place);
    }
    // x is multiplied by it before it meets the weight (ModelOpt `pre_quant_scale`): W diag(s) x.
    tensor.input_factors = group.place("pre_quant_scale");
    if (group.plain && codes != nullptr) return resolution_.unknown_form(tensor, "two sets of codes");
    const auto formats = stored_formats();
    const auto found = std::find_if(formats.rbegin(), formats.rend(), [&](const StoredFormat* format) {
      return format->claims != nullptr && format->claims(resolution_, tensor, group);
    });
    if (found == formats.rend()) return resolution_.unknown_form(tensor);
    (*found)->resolve(resolution_, tensor, group);
  }

  void without_codes(const std::string& weight, const StoredGroup& group) {
    const bool only_activations = std::all_of(group.pieces.begin(), group.pieces.end(),
                                              [](const StoredPiece& p) { return p.ending->of_activations; });
    if (!only_activations) {
      return resolution_.fault("stored.scale_without_weight", stored(group.pieces.front().place).name,
                               fmt::format("it belongs to {}, which is not here", weight),
                               "complete the checkpoint, or leave the tensor out");
    }
    for (const StoredPiece& piece : group.pieces) {
      LogicalTensor tensor;
      tensor.name = stored(piece.place).name;
      tensor.codes = piece.place;
      tensor.form.codes = stored(piece.place).type;
      resolution_.finish(tensor, stored(piece.place).shape);
    }
  }

  const Checkpoint& checkpoint_;
  StoredResolution resolution_;
  std::unordered_map<std::string, StoredGroup> groups_;
  std::vector<std::string> order_;
};

}  // namespace

StoredTensors find_stored(const Checkpoint& checkpoint,
                          const std::optional<QuantizationConfig>& quantization) {
  return Finder(checkpoint, quantization).run();
}

}  // namespace assay
