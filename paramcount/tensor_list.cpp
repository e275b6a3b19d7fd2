#include "paramcount/tensor_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unordered_map>
#include <unordered_set>

#include "core/model/stored_form.h"
#include "core/system/json.h"
#include "core/system/table.h"
#include "paramcount/plan_cut.h"

namespace assay {
namespace {

std::string_view word(Storage storage) {
  switch (storage) {
    case Storage::own: return "own";
    case Storage::tied: return "tied";
    case Storage::duplicate: return "duplicate";
    case Storage::buffer: return "buffer";
  }
  return "";
}

std::string joined(const std::vector<std::uint64_t>& shape) {
  return fmt::format("{}", fmt::join(shape, "x"));
}

// What the checkpoint's headers say of each tensor, by the name the tree gives it.
class StoredTypes {
 public:
  explicit StoredTypes(const Model& model) {
    if (!model.checkpoint || model.checkpoint->tensors.empty() ||
        model.config.origin() == ModelConfig::Origin::gguf)
      return;
    stored_ = find_stored(*model.checkpoint, read_quantization(*model.checkpoint)).tensors;
    const TensorLookup lookup(model.tree);
    for (std::size_t i = 0; i < stored_.size(); ++i) {
      if (const auto found = lookup.find(stored_[i].name))
        places_.emplace(expand(found->spec->name, found->indices), i);
    }
  }
  const LogicalTensor* find(const std::string& name) const {
    const auto at = places_.find(name);
    return at == places_.end() ? nullptr : &stored_[at->second];
  }

 private:
  std::vector<LogicalTensor> stored_;
  std::unordered_map<std::string, std::size_t> places_;
};

std::uint64_t bytes_of(const LogicalTensor& tensor, const Checkpoint& checkpoint) {
  std::uint64_t bytes = 0;
  for (const std::uint32_t place : tensor.places()) bytes += checkpoint.tensors[place].bytes;
  return bytes;
}

}  // namespace

void for_each_line(const Model& model, const Question& question,
                   const std::function<void(const TensorLine&)>& visit) {
  const StoredTypes stored(model);
  const WeightFormat& format = question.plan.format;
  const WeightSizes sizes(model.tree, format);
  const EngineAt engine =
      question.plan.engines.empty() ? EngineAt(Engine::vllm) : question.plan.engines.front();
  const Layout layout = question.layout.value_or(Layout());
  const EngineCut cut(model.tree, layout, engine, format);
  std::unordered_set<const TensorSpec*> predicting;
  for_each_spec(model.tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (where.mtp) predicting.insert(&spec);
  });
  for_each_tensor(model.tree, [&](const std::string& name, const TensorSpec& spec, const TensorIndices& at) {
    TensorLine line{name, &spec, {}, 0, {}, predicting.contains(&spec), false};
    if (question.layout) line.rank_shape = cut.rank_shape(spec);
    if (const LogicalTensor* found = stored.find(name)) {
      line.type = form_name(*found);
      line.bytes = bytes_of(*found, *model.checkpoint);
      line.stored = true;
    } else {
      line.type = sizes.type_of(spec, at.layer);
      line.bytes = sizes.of_tensor(spec, spec.shape, at.layer);
    }
    visit(line);
  });
}

std::string render_tensor_table(const Model& model, const Question& question) {
  using Align = Table::Align;
  std::vector<std::string> header = {"TENSOR", "SHAPE", "TYPE", "BYTES", "PART"};
  std::vector<Align> align = {Align::left, Align::right, Align::left, Align::right, Align::left};
  if (question.layout) header.emplace_back("A RANK HOLDS"), align.push_back(Align::right);
  Table table(header, align);
  for_each_line(model, question, [&](const TensorLine& line) {
    const TensorSpec& spec = *line.spec;
    std::string part(name(spec.part));
    if (spec.storage != Storage::own) part += fmt::format(" ({})", word(spec.storage));
    std::vector<std::string> row = {line.name, joined(spec.shape), line.type, std::to_string(line.bytes),
                                    part};
    if (question.layout) row.push_back(joined(line.rank_shape));
    table.add(std::move(row));
  });
  return table.render();
}

std::string render_tensor_csv(const Model& model, const Question& question) {
  std::string out = "name,shape,type,bytes,part,role,mtp,storage,same_as,stored,rank_shape\r\n";
  for_each_line(model, question, [&](const TensorLine& line) {
    const TensorSpec& spec = *line.spec;
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\r\n", line.name, joined(spec.shape), line.type,
                       line.bytes, name(spec.part), name(spec.role), line.mtp ? "yes" : "no",
                       word(spec.storage), spec.same_as, line.stored ? "yes" : "no", joined(line.rank_shape));
  });
  return out;
}

Json render_tensor_json(const Model& model, const Question& question) {
  Json tensors = Json::array();
  for_each_line(model, question, [&](const TensorLine& line) {
    const TensorSpec& spec = *line.spec;
    Json entry = {{"name", line.name},
                  {"shape", spec.shape},
                  {"type", line.type},
                  {"bytes", line.bytes},
                  {"part", std::string(name(spec.part))},
                  {"role", std::string(name(spec.role))},
                  {"mtp", line.mtp},
                  {"storage", std::string(word(spec.storage))},
                  {"stored", line.stored}};
    if (!spec.same_as.empty()) entry["same_as"] = spec.same_as;
    if (question.layout) entry["rank_shape"] = line.rank_shape;
    tensors.push_back(std::move(entry));
  });
  Json document = {{"schema", "assay.paramcount-tensors/1"},
                   {"model", model.source.string()},
                   {"architecture", model.tree.architecture},
                   {"family", model.tree.family}};
  if (question.layout) document["layout"] = question.layout->text();
  document["tensors"] = std::move(tensors);
  return document;
}

}  // namespace assay
