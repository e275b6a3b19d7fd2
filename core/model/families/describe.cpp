// From a config to its tree: the family fills it, names are completed, sizes bounded.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/model/derive_tree.h"
#include "core/model/families/families.h"
#include "core/model/families/other_heads.h"
#include "core/model/families/sighted.h"
#include "core/model/module_tree.h"
#include "core/system/error.h"

namespace assay {
namespace {

// More tensors than any checkpoint could list; a config that asks for them is hostile or broken.
constexpr std::uint64_t kMostTensors = 20'000'000;

std::string join(std::string_view prefix, std::string_view rest) {
  if (prefix.empty() || rest.empty()) return fmt::format("{}{}", prefix, rest);
  return fmt::format("{}.{}", prefix, rest);
}

void complete_names(Module& module, const std::string& prefix) {
  const std::string here = join(prefix, module.path);
  for (TensorSpec& spec : module.tensors) spec.name = join(here, spec.name);
  for (Module& child : module.children) complete_names(child, here);
}

std::uint64_t product_of(std::uint64_t a, std::uint64_t b) {
  return (Quantity(a) * Quantity(b)).value();
}

std::uint64_t tensors_in(const Module& module) {
  Quantity inner = module.tensors.size();
  for (const Module& child : module.children) inner = inner + Quantity(tensors_in(child));
  return product_of(inner.value(), module.repeat.count.value());
}

// Everything that later code may assume: totals fit in 64 bits, and the number of tensors is sane.
void check_bounds(const ModuleTree& tree, const ModelConfig& config) {
  Quantity tensors = 0, elements = 0;
  for (const auto* part : {&tree.modules, &tree.mtp, &tree.towers}) {
    for (const Module& module : *part) tensors = tensors + Quantity(tensors_in(module));
  }
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    elements = elements + Quantity(product_of(spec.elements.value(), where.copies));
  });
  // Counts of bytes and of several copies are derived from it.
  product_of(elements.value(), 64);
  if (tensors.value() > kMostTensors) {
    throw Error::input(fmt::format("describes {} tensors: no checkpoint has so many", tensors.value()))
        .in(config.source());
  }
}

// Experts that a config promises and the family's layers have not: of another model under the same class name, or of one that
// somebody put together.
void check_experts(const ModuleTree& tree, const ConfigReader& reader) {
  if (tree.experts > 0) return;
  const ParsedJson& config = reader.config().text();
  const auto is_off = [&](const char* flag) {  // by the config, or by the class where that is silent
    const auto found = config.find(flag);
    if (found != config.end()) return *found == false;
    const auto& taken = reader.defaults_taken();
    return std::any_of(taken.begin(), taken.end(), [&](const DefaultTaken& default_taken) {
      return default_taken.key == flag && default_taken.value == "false";
    });
  };
  if (is_off("is_moe") || is_off("use_moe") || is_off("enable_moe_block")) return;
  // Classes that know experts, and whose layers say by lists that none has any.
  for (const char* list :
       {"layers_block_type", "hybrid_override_pattern", "mlp_layer_types", "layer_types", "block_configs",
        "mlp_only_layers", "decoder_sparse_step", "first_k_dense_replace", "moe_layer_freq"})
    if (config.contains(list)) return;
  for (const char* key : {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"}) {
    const auto found = config.find(key);
    if (found == config.end() || !found->is_number_unsigned() || *found < 2) continue;
    throw Error::input(fmt::format("{} is {}, and {} has no experts: a config of another model", key,
                                   found->get<std::uint64_t>(), tree.title))
        .in(reader.config().source())
        .remedy("docs/families.md tells how to add one");
  }
}

// What differs by layer, as transformers saves it since 5.24 of any model ("1": {"intermediate_size": 32}): of families that read
// it, or whose own keys say the same.
void check_layers_alike(const Family& family, const ConfigReader& reader) {
  constexpr std::string_view kRead[] = {
      "embedding_gemma2",         "gemma4",     "gemma4_unified", "gemma4_assistant",
      "gemma4_unified_assistant", "domyn_edge", "dots3_note",     "step3p5"};
  const ParsedJson& config = reader.config().text();
  const auto found = config.find("per_layer_config");
  if (found == config.end() || found->is_null() || found->empty()) return;
  if (std::find(std::begin(kRead), std::end(kRead), family.name) != std::end(kRead)) return;
  reader.fail("per_layer_config gives layers sizes of their own, which is not described of this family");
}

std::variant<Hyperparameters, Error> read_hyperparameters(const Family& family, const ModelConfig& config,
                                                          const ModuleTree& tree) {
  if (family.hyperparameters == nullptr)
    return Error::input(fmt::format("what a forward pass of {} reads is not described here", family.title))
        .in(config.source());
  // Its shapes can be told by the names of its keys; what else a file of it says nobody has held against anything.
  const auto& known = family.gguf_architectures;
  if (config.origin() == ModelConfig::Origin::gguf &&
      std::find(known.begin(), known.end(), config.model_type()) == known.end())
    return Error::input(fmt::format("a GGUF of {} is described, and not computed here", family.title))
        .in(config.source());
  try {
    ConfigReader reader(config, family.name);
    return family.hyperparameters(reader, tree);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    return error;
  }
}

// Another name of the family, too: what is told of the one, GGUF and forward passes, does not hold of the other.
void change_family(const families::OtherHead& head, ModuleTree& tree) {
  const bool same = head.kind == families::OtherHead::Kind::same;
  tree.family += same ? "_both_ways" : head.kind == families::OtherHead::Kind::none ? "_body" : "_classifier";
  tree.title += same ? ", attending to both sides" : " under another head, or none";
}

Error not_computed(const ModuleTree& tree, const ModelConfig& config) {
  return Error::input(fmt::format("{} is counted, and not computed", tree.title)).in(config.source());
}

bool is_described_itself(const ModelConfig& config) {
  try {
    find_family(config);
    return family_of_whole(config) != nullptr || families::find_sighted(config) != nullptr;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    return false;
  }
}

// A described model that sees or hears, without its head or under another one.
std::optional<families::OtherHead> head_of_larger(const ModelConfig& config) {
  const auto head = families::other_head_of_larger(config.architecture());
  if (!head || is_described_itself(config) || !is_described_itself(config.with_architecture(head->base)))
    return std::nullopt;
  // Of flat configs only what a table names: endings alone tell too little.
  const bool named = head->kind == families::OtherHead::Kind::score_mlp;
  return named || !config.nested_in().empty() ? head : std::nullopt;
}

ModuleTree describe_under_head(const ModelConfig& config, const families::OtherHead& head) {
  ModuleTree tree = describe(config.with_architecture(head.base));
  const ModelConfig document = config.document_only();
  ConfigReader reader(document, tree.family);
  families::change_head_of_larger(head, reader, tree);
  change_family(head, tree);
  tree.architecture = config.architecture();
  for (const DefaultTaken& taken : reader.defaults_taken()) tree.defaults.push_back(taken);
  tree.read_hyperparameters = not_computed(tree, config);
  return tree;
}

// Of no shape a part, but what engines deal a tower out by.
std::uint64_t vision_heads(const ModelConfig& config) {
  const ParsedJson& document = config.document();
  const auto vision = document.find("vision_config");
  if (vision == document.end() || !vision->is_object()) return 0;
  for (const char* key : {"num_heads", "num_attention_heads", "vt_num_attention_heads"}) {
    const auto found = vision->find(key);
    if (found != vision->end() && found->is_number_unsigned()) return found->get<std::uint64_t>();
  }
  return 0;
}

// Layers of which there are none hold nothing.
void drop_empty(std::vector<Module>& modules) {
  std::erase_if(modules, [](const Module& module) {
    return module.repeat.over != Repeat::Over::nothing && module.repeat.indices.empty();
  });
  for (Module& module : modules) drop_empty(module.children);
}

ModuleTree describe_retriever(const ModelConfig& config, const families::Retriever& retriever) {
  ModuleTree tree = describe(retriever.whole);
  families::make_retriever(retriever, tree);
  tree.family += "_retriever", tree.title += ", whose tokens become vectors";
  tree.architecture = config.architecture();
  tree.read_hyperparameters = not_computed(tree, config);
  return tree;
}

}  // namespace

ModuleTree describe(const ModelConfig& config) {
  if (const auto retriever = families::retriever_of(config)) return describe_retriever(config, *retriever);
  if (const auto other = head_of_larger(config)) return describe_under_head(config, *other);
  const Family& family = find_family(config);
  const auto head = head_of_whole(config);
  const bool around = family_of_whole(config) == nullptr;  // towers around a language model of that family
  const families::Sighted* sighted = around ? families::find_sighted(config) : nullptr;
  const auto tied = sighted == nullptr ? ModelConfig::Tied::document_first : sighted->tied;
  const ModelConfig own = around ? config.language_model(tied) : config;
  ConfigReader reader(own, family.name);
  ModuleTree tree;
  tree.family = family.name;
  tree.title = family.title;
  tree.architecture = config.architecture().empty() ? config.model_type() : config.architecture();
  try {
    family.describe(reader, tree);
    check_experts(tree, reader);
    check_layers_alike(family, reader);
    for (auto* part : {&tree.modules, &tree.mtp}) {
      for (Module& module : *part) complete_names(module, "");
    }
    if (head) {
      families::change_head(*head, reader, tree);
      change_family(*head, tree);
    }
    if (around) families::add_sight(sighted, config, tree);
    for (Module& module : tree.towers) complete_names(module, "");
    for (auto* part : {&tree.modules, &tree.mtp, &tree.towers}) drop_empty(*part);
    check_bounds(tree, config);
    if (!tree.towers.empty()) tree.vision_heads = vision_heads(config);
  } catch (Error& error) {  // a product that overflows knows nothing of the file
    error.in(config.source());
    throw;
  }
  // Towers noted theirs as they were read.
  tree.defaults.insert(tree.defaults.begin(), reader.defaults_taken().begin(), reader.defaults_taken().end());
  if (head)
    tree.read_hyperparameters = not_computed(tree, config);
  else if (sighted != nullptr && !sighted->computed)
    tree.read_hyperparameters =
        Error::input(fmt::format("{} is described, and not computed here", sighted->title))
            .in(config.source());
  else
    tree.read_hyperparameters = read_hyperparameters(family, own, tree);
  return tree;
}

bool is_described(const ModelConfig& config) {
  return is_described_itself(config) || head_of_larger(config).has_value() ||
         families::retriever_of(config).has_value();
}

const Hyperparameters& hyperparameters(const ModuleTree& tree) {
  if (const auto* fault = std::get_if<Error>(&tree.read_hyperparameters)) throw Error(*fault);
  return std::get<Hyperparameters>(tree.read_hyperparameters);
}

}  // namespace assay
