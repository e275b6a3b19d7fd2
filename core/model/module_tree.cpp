#include "core/model/module_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::string_view kLayer = "{layer}", kExpert = "{expert}";

std::uint64_t checked_product(std::uint64_t a, std::uint64_t b) {
  return (Quantity(a) * Quantity(b)).value();
}

Quantity terms_of_one(const Module& module);

Quantity terms_of_all(const Module& module) {
  const Quantity one = terms_of_one(module);
  return one.value() == 0 ? Quantity(0) : module.repeat.count * one;
}

Quantity terms_of_one(const Module& module) {
  std::vector<Quantity> terms;
  for (const TensorSpec& spec : module.tensors) {
    if (spec.storage == Storage::own) terms.push_back(spec.elements);
  }
  for (const Module& child : module.children) {
    Quantity all = terms_of_all(child);
    if (all.value() == 0) continue;
    // A child that occurs once adds its own terms, so that like terms can be gathered across children.
    if (all.kind() == Quantity::Kind::sum)
      terms.insert(terms.end(), all.parts().begin(), all.parts().end());
    else
      terms.push_back(std::move(all));
  }
  return gathered_sum(terms);
}

void visit_module(const Module& module, Occurrence& where,
                  const std::function<void(const TensorSpec&, const Occurrence&)>& visit) {
  const std::uint64_t copies = where.copies, active_copies = where.active_copies;
  where.path.push_back(&module);
  where.copies = checked_product(copies, module.repeat.count.value());
  where.active_copies = checked_product(active_copies, module.repeat.active);
  for (const TensorSpec& spec : module.tensors) visit(spec, where);
  for (const Module& child : module.children) visit_module(child, where, visit);
  where.path.pop_back();
  where.copies = copies;
  where.active_copies = active_copies;
}

using TensorVisitor = std::function<void(const std::string&, const TensorSpec&, const TensorIndices&)>;

void expand_module(const Module& module, TensorIndices indices, std::string& name,
                   const TensorVisitor& visit) {
  const std::size_t times = module.repeat.over == Repeat::Over::nothing ? 1 : module.repeat.indices.size();
  for (std::size_t i = 0; i < times; ++i) {
    if (module.repeat.over == Repeat::Over::layers) indices.layer = module.repeat.indices[i];
    if (module.repeat.over == Repeat::Over::experts) indices.expert = module.repeat.indices[i];
    for (const TensorSpec& spec : module.tensors) {
      name = expand(spec.name, indices);
      visit(name, spec, indices);
    }
    for (const Module& child : module.children) expand_module(child, indices, name, visit);
  }
}

}  // namespace

Quantity formula_of_one(const Module& module) {
  return terms_of_one(module);
}
Quantity formula(const Module& module) {
  return terms_of_all(module);
}
std::uint64_t active_elements(const TensorSpec& spec, const Occurrence& where) {
  std::uint64_t one = spec.elements.value();
  if (spec.stacked != 0) one = one / spec.stacked * spec.stacked_active;
  return one * where.active_copies;
}

std::uint64_t parameters(const Module& module) {
  std::uint64_t sum = 0;
  Occurrence where;
  visit_module(module, where, [&](const TensorSpec& spec, const Occurrence& here) {
    if (spec.storage == Storage::own) sum += spec.elements.value() * here.copies;
  });
  return sum;
}

void for_each_spec(const ModuleTree& tree,
                   const std::function<void(const TensorSpec&, const Occurrence&)>& visit) {
  Occurrence where;
  for (const Module& module : tree.modules) visit_module(module, where, visit);
  where.mtp = true;
  for (const Module& module : tree.mtp) visit_module(module, where, visit);
  where.mtp = false;
  where.tower = true;
  for (const Module& module : tree.towers) visit_module(module, where, visit);
}

namespace {

// The table that a tied head is; "": none. Beside it there may be one that is looked up alone (T5Gemma's encoder's).
std::string table_of_head(const ModuleTree& tree) {
  std::string name;
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (where.main() && spec.storage == Storage::tied && spec.part == Part::output) name = spec.same_as;
  });
  return name;
}

}  // namespace

Totals count(const ModuleTree& tree) {
  Totals totals;
  std::uint64_t input_only = 0;  // embeddings that serve as a lookup and nothing else
  bool mtp_embeds = false;       // by a table of its own
  const std::string head = tree.tied_embeddings ? table_of_head(tree) : "";
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    const std::uint64_t all = spec.elements.value() * where.copies, active = active_elements(spec, where);
    const bool matrix = spec.shape.size() >= 2 && !spec.bias;
    if (where.mtp && spec.storage == Storage::own) {
      totals.mtp_own += all, totals.mtp_active += active;
      if (spec.role == Role::token_embedding) mtp_embeds = true;
    }
    if (where.mtp && spec.storage == Storage::duplicate) totals.mtp_duplicates += all;
    if (where.tower && spec.storage == Storage::own) totals.towers += all;
    // A block of layers that have the same weights as another one works in each of them.
    if (where.main() && matrix && spec.storage == Storage::tied && spec.part != Part::output)
      totals.matmul_active += active;
    if (!where.main() || spec.storage != Storage::own) return;
    totals.total += all;
    totals.active += active;
    const bool is_head = tree.tied_embeddings && (head.empty() || spec.name == head);
    const bool lookup =
        spec.role == Role::position_embedding || (spec.role == Role::token_embedding && !is_head);
    if (lookup)
      input_only += active;
    else if (matrix)
      totals.matmul_active += active;
  });
  totals.active_without_embedding = totals.active - input_only;
  if (tree.mtp.empty()) return totals;
  // Whether or not they are stored again, it runs through the embedding and the head; but for its own.
  const std::uint64_t shared =
      checked_product(tree.vocabulary, tree.hidden_size) * (tree.tied_embeddings || mtp_embeds ? 1 : 2);
  totals.mtp_active_with_shared = totals.mtp_active + shared;
  return totals;
}

std::string expand(std::string_view name_template, const TensorIndices& indices) {
  std::string name;
  name.reserve(name_template.size() + 8);
  while (!name_template.empty()) {
    const auto open = name_template.find('{');
    name += name_template.substr(0, open);
    if (open == std::string_view::npos) break;
    name_template.remove_prefix(open);
    const bool layer = name_template.starts_with(kLayer);
    fmt::format_to(std::back_inserter(name), "{}", layer ? indices.layer : indices.expert);
    name_template.remove_prefix(layer ? kLayer.size() : kExpert.size());
  }
  return name;
}

void for_each_tensor(const ModuleTree& tree, const TensorVisitor& visit) {
  std::string name;
  for (const auto* part : {&tree.modules, &tree.mtp, &tree.towers}) {
    for (const Module& module : *part) expand_module(module, {}, name, visit);
  }
}

}  // namespace assay
