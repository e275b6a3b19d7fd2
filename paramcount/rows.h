// The module tree as a table to read: one row a module, its projections and norms below it, with counts,
// arithmetic and bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/model/module_tree.h"
#include "core/model/weight_bytes.h"

namespace assay {

struct Row {
  std::string title;         // "attention (MLA)", "q_a_proj.weight", "MoE layers 3-60"
  std::string path;          // "model.layers.{layer}.self_attn"
  std::uint64_t count = 1;   // how often it occurs in the row above
  std::uint64_t params = 0;  // of one occurrence
  std::uint64_t total = 0;   // of all occurrences in the model
  std::uint64_t active = 0;  // of total, what computes for one token
  std::uint64_t bytes = 0;   // of all occurrences, as stored
  std::string formula;       // of params: "7168 × 1536 + 1536"; empty for 0
  std::string symbols;       // the same with the config's keys
  std::string part;          // "attention": the colour of a chart
  bool mtp = false, tower = false;
  std::vector<Row> children;
};

// `bytes`: as a checkpoint stores them, or a format would; of a spec that is not in it none.
std::vector<Row> make_rows(const ModuleTree& tree, const SpecBytes& bytes);

// The other reading: what each kind of part takes in the whole main model, and the MTP layers as one; vision, audio
// and projectors beside it.
struct PartRow {
  std::string title;
  std::uint64_t total = 0, active = 0, bytes = 0;
  bool beside = false;  // the language model: MTP, towers
};
std::vector<PartRow> make_parts(const ModuleTree& tree, const SpecBytes& bytes);

// "0-2", "3-60", "0, 2, 4, …": indices as people write them.
std::string index_ranges(const std::vector<std::uint64_t>& indices);

}  // namespace assay
