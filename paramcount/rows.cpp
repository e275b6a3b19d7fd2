#include "paramcount/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace assay {
namespace {

std::uint64_t bytes_of(const TensorSpec& spec, const SpecBytes& bytes) {
  const auto found = bytes.find(&spec);
  return found == bytes.end() ? 0 : found->second;
}

class RowMaker {
 public:
  struct Beside {  // the language model
    bool mtp = false, tower = false;
  };
  RowMaker(const ModuleTree& tree, const SpecBytes& bytes) {
    for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
      const bool own = spec.storage == Storage::own;
      figures_[&spec] = {own ? spec.elements.value() * where.copies : 0,
                         own && !where.tower ? active_elements(spec, where) : 0, bytes_of(spec, bytes)};
    });
  }

  Row module_row(const Module& module, const std::string& prefix, const Beside& beside) const {
    Row row;
    row.title = title_of(module);
    row.path = prefix.empty() || module.path.empty() ? prefix + module.path : prefix + "." + module.path;
    row.count = module.repeat.count.value();
    set_formula(row, formula_of_one(module));
    add_tensors(row, module);
    mark(row, beside);
    for (const Module& child : module.children) append(row, module_row(child, row.path, beside));
    for (const Row& child : row.children) {
      row.total += child.total;
      row.active += child.active;
      row.bytes += child.bytes;
    }
    // What most of it is gives a chart its colour.
    const auto most = std::max_element(row.children.begin(), row.children.end(),
                                       [](const Row& a, const Row& b) { return a.total < b.total; });
    if (most != row.children.end()) row.part = most->part;
    return row;
  }

 private:
  struct Figures {
    std::uint64_t total, active, bytes;
  };

  static std::string title_of(const Module& module) {
    if (module.repeat.over != Repeat::Over::layers) return module.title;
    return fmt::format("{} {}", module.title, index_ranges(module.repeat.indices));
  }

  static void set_formula(Row& row, const Quantity& one) {
    row.params = one.value();
    if (one.value() == 0) return;
    row.formula = one.numbers();
    row.symbols = one.symbols();
  }

  static void mark(Row& row, const Beside& beside) {
    row.mtp = beside.mtp;
    row.tower = beside.tower;
    for (Row& child : row.children) mark(child, beside);
  }

  // An occurrence that has nothing of its own and nothing stored says nothing.
  static void append(Row& parent, Row child) {
    if (child.total > 0 || child.bytes > 0 || !child.children.empty())
      parent.children.push_back(std::move(child));
  }

  Row tensor_row(const TensorSpec& spec) const {
    Row row;
    row.path = spec.name;
    const auto last = spec.name.rfind('.', spec.name.rfind('.') - 1);
    const auto start = spec.name.find('.') == spec.name.rfind('.') ? std::string::npos : last;
    row.title = start == std::string::npos ? spec.name : spec.name.substr(start + 1);
    if (row.title.ends_with(".weight")) row.title.resize(row.title.size() - 7);
    row.part = std::string(name(spec.part));
    if (spec.storage == Storage::own) set_formula(row, spec.elements);
    if (spec.storage == Storage::tied || spec.storage == Storage::duplicate)
      row.title += " (= " + spec.same_as + ")";
    const Figures& figures = figures_.at(&spec);
    row.total = figures.total;
    row.active = figures.active;
    row.bytes = figures.bytes;
    return row;
  }

  // The norms of a layer stand in a group of their own, beside its attention and MLP.
  void add_tensors(Row& row, const Module& module) const {
    if (module.children.empty()) {
      for (const TensorSpec& spec : module.tensors) {
        if (spec.storage != Storage::buffer || figures_.at(&spec).bytes > 0) append(row, tensor_row(spec));
      }
      return;
    }
    std::map<Part, Row> groups;
    std::map<Part, std::vector<Quantity>> terms;
    for (const TensorSpec& spec : module.tensors) {
      if (spec.storage == Storage::buffer && figures_.at(&spec).bytes == 0) continue;
      Row& group = groups[spec.part];
      Row tensor = tensor_row(spec);
      group.title = std::string(title(spec.part));
      group.path = row.path;
      group.part = tensor.part;
      group.total += tensor.total;
      group.active += tensor.active;
      group.bytes += tensor.bytes;
      if (spec.storage == Storage::own) terms[spec.part].push_back(spec.elements);
      group.children.push_back(std::move(tensor));
    }
    for (auto& [part, group] : groups) {
      set_formula(group, gathered_sum(terms[part]));
      append(row, std::move(group));
    }
  }

  std::unordered_map<const TensorSpec*, Figures> figures_;
};

}  // namespace

std::vector<Row> make_rows(const ModuleTree& tree, const SpecBytes& bytes) {
  const RowMaker maker(tree, bytes);
  std::vector<Row> rows;
  for (const Module& module : tree.modules) rows.push_back(maker.module_row(module, "", {}));
  for (const Module& module : tree.mtp) rows.push_back(maker.module_row(module, "", {.mtp = true}));
  for (const Module& module : tree.towers) rows.push_back(maker.module_row(module, "", {.tower = true}));
  return rows;
}

std::vector<PartRow> make_parts(const ModuleTree& tree, const SpecBytes& bytes) {
  std::map<Part, PartRow> parts;
  PartRow mtp{.title = std::string(title(Part::mtp)), .beside = true};
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    PartRow& row = where.mtp ? mtp : parts[spec.part];
    row.title = where.mtp ? row.title : std::string(title(spec.part));
    if (spec.storage == Storage::own) {
      row.total += spec.elements.value() * where.copies;
      if (!where.tower) row.active += active_elements(spec, where);
    }
    row.beside = !where.main();
    row.bytes += bytes_of(spec, bytes);
  });
  std::vector<PartRow> rows;
  for (auto& [part, row] : parts) {
    if (row.total > 0 || row.bytes > 0) rows.push_back(std::move(row));
  }
  if (mtp.total > 0) rows.push_back(std::move(mtp));
  return rows;
}

std::string index_ranges(const std::vector<std::uint64_t>& indices) {
  std::string text;
  std::size_t pieces = 0;
  for (std::size_t i = 0; i < indices.size();) {
    std::size_t end = i;
    while (end + 1 < indices.size() && indices[end + 1] == indices[end] + 1) ++end;
    if (++pieces > 4) return text + ", …";
    if (!text.empty()) text += ", ";
    text += end == i ? fmt::format("{}", indices[i]) : fmt::format("{}-{}", indices[i], indices[end]);
    i = end + 1;
  }
  return text;
}

}  // namespace assay
