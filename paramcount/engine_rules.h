// One table per engine: what it asks of shapes, since which version, and in which words it refuses. The tables are
// data; plan_rules.cpp acts on a rule where the engine's table has it for the version asked about, so a line taken
// out of a table takes the rule out of every plan. docs/engines.md is these tables, printed.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "paramcount/engine.h"

namespace assay {

enum class Rule {
  heads,
  key_heads,
  key_heads_repeated,
  latent_everywhere,
  mamba_heads,
  mamba_groups,
  delta_heads,
  kda_heads,
  experts_at_most_tp,
  experts_at_most_ep,
  experts_divide,
  experts_uneven,
  experts_lost,
  experts_needed,
  experts_over_all_ranks,
  widths,
  expert_widths,
  fp8_inputs,
  fp8_outputs,
  fp8_merged,
  fp8_merged_but_last,
  fp8_merged_tolerated,
  fp8_experts,
  fp8_experts_refined,
  fp8_whole_blocks,
  int4_groups,
  fp4_groups,
  marlin_tiles,
  marlin_padded,
  mxfp4_whole_blocks,
  mlp_over_fewer,
  bnb_unknown,
  bnb_plugin,
  bnb_uncut,
  bnb_int8_experts,
  tower_cut,
  tower_heads,
  tower_widths,
  tower_whole,
  tower_attention_whole,
  tower_data,
  tower_on_every_stage,
  vocabulary_padded,
  layers_to_middle,
  layers_to_last_stages,
  layers_to_last_stage,
  layers_to_first_stages,
  layers_fill_stages,
};
std::string_view name(Rule rule);  // "fp8-merged-tolerated"

struct EngineRule {
  Rule rule;
  std::string_view asks;     // a sentence for people
  std::string_view message;  // its own words, with {placeholders}; empty: it has none, or none is known
  std::string_view
      source;  // file and function; TensorRT-LLM's under tensorrt_llm/, the others' under vllm/, sglang/
  EngineVersion from = {}, until = {};  // [from, until); zeros: as far as is known
  // Families of module trees, or of a rule about towers architectures; empty: all.
  std::span<const std::string_view> families = {};
  bool holds(const EngineVersion& version, std::string_view family) const;
};

struct EngineTable {
  Engine engine;
  std::string_view name;  // "vllm"
  std::span<const EngineVersion> known;
  std::span<const EngineRule> rules;
};

extern const EngineTable kVllmTable, kSglangTable, kTrtllmTable;
extern const EngineTable kOwnTable;  // of assay's ranks; not among engine_tables()
std::span<const EngineTable* const> engine_tables();
const EngineTable& engine_table(Engine engine);
// The rule as that version has it for such a model; nullptr: it has none.
const EngineRule* find_rule(const EngineAt& engine, Rule rule, std::string_view family);

// "… tp {tp}" with {{"tp", "8"}}.
std::string filled(std::string_view message,
                   std::initializer_list<std::pair<std::string_view, std::string>> values);

// As docs/engines.md has them; `engines` empty: all, with the ranges of versions that have each rule.
std::string render_engine_rules(std::span<const EngineAt> engines);

}  // namespace assay
