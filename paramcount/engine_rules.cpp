#include "paramcount/engine_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace assay {
namespace {

constexpr std::array<const EngineTable*, 3> kTables = {&kVllmTable, &kSglangTable, &kTrtllmTable};

std::string versions_of(const EngineRule& rule, const EngineTable& table) {
  const EngineVersion zero;
  std::string text;
  for (const EngineVersion& version : table.known) {
    if (version < rule.from || (rule.until != zero && version >= rule.until)) continue;
    if (text.empty()) text = version.text();
  }
  if (rule.until == zero) return "from " + text;
  const auto last = std::find(table.known.begin(), table.known.end(), rule.until);
  return fmt::format("{} to {}", text, last == table.known.begin() ? text : std::prev(last)->text());
}

std::string families_of(const EngineRule& rule) {
  std::string text;
  for (const std::string_view family : rule.families)
    text += (text.empty() ? " Models: " : ", ") + std::string(family);
  return text.empty() ? text : text + ".";
}

void print(const EngineTable& table, const EngineAt* only, std::string& out) {
  out += fmt::format("\n## {}\n\n", title(table.engine));
  if (only == nullptr) {
    out += "Sources read:";
    for (const EngineVersion& version : table.known)
      out += (version == table.known.front() ? " " : ", ") + version.text();
  } else {
    out += "As of " + only->version.text();
  }
  out += ".\n\n| rule | what it asks or does | its own words | versions | source |\n|---|---|---|---|---|\n";
  for (const EngineRule& rule : table.rules) {
    if (only != nullptr && !rule.holds(only->version, rule.families.empty() ? "" : rule.families.front()))
      continue;
    const std::string words = rule.message.empty() ? std::string() : fmt::format("`{}`", rule.message);
    out += fmt::format("| `{}` | {}{} | {} | {} | `{}` |\n", name(rule.rule), rule.asks, families_of(rule),
                       words, versions_of(rule, table), rule.source);
  }
}

}  // namespace

std::string_view name(Rule rule) {
  constexpr std::string_view kNames[] = {
      "heads",
      "key-heads",
      "key-heads-repeated",
      "latent-everywhere",
      "mamba-heads",
      "mamba-groups",
      "delta-heads",
      "kda-heads",
      "experts-at-most-tp",
      "experts-at-most-ep",
      "experts-divide",
      "experts-uneven",
      "experts-lost",
      "experts-needed",
      "experts-over-all-ranks",
      "widths",
      "expert-widths",
      "fp8-inputs",
      "fp8-outputs",
      "fp8-merged",
      "fp8-merged-but-last",
      "fp8-merged-tolerated",
      "fp8-experts",
      "fp8-experts-refined",
      "fp8-whole-blocks",
      "int4-groups",
      "fp4-groups",
      "marlin-tiles",
      "marlin-padded",
      "mxfp4-whole-blocks",
      "mlp-over-fewer",
      "bnb-unknown",
      "bnb-plugin",
      "bnb-uncut",
      "bnb-int8-experts",
      "tower-cut",
      "tower-heads",
      "tower-widths",
      "tower-whole",
      "tower-attention-whole",
      "tower-data",
      "tower-on-every-stage",
      "vocabulary-padded",
      "layers-to-middle",
      "layers-to-last-stages",
      "layers-to-last-stage",
      "layers-to-first-stages",
      "layers-fill-stages",
  };
  static_assert(std::size(kNames) == static_cast<std::size_t>(Rule::layers_fill_stages) + 1);
  return kNames[static_cast<std::size_t>(rule)];
}

bool EngineRule::holds(const EngineVersion& version, std::string_view family) const {
  if (version < from || (until != EngineVersion{} && version >= until)) return false;
  return families.empty() || std::find(families.begin(), families.end(), family) != families.end();
}

std::span<const EngineTable* const> engine_tables() {
  return kTables;
}

const EngineTable& engine_table(Engine engine) {
  return engine == Engine::assay ? kOwnTable : *kTables[static_cast<std::size_t>(engine)];
}

const EngineRule* find_rule(const EngineAt& engine, Rule rule, std::string_view family) {
  for (const EngineRule& candidate : engine_table(engine.engine).rules) {
    if (candidate.rule == rule && candidate.holds(engine.version, family)) return &candidate;
  }
  return nullptr;
}

std::string filled(std::string_view message,
                   std::initializer_list<std::pair<std::string_view, std::string>> values) {
  std::string text(message);
  for (const auto& [key, value] : values) {
    const std::string mark = fmt::format("{{{}}}", key);
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size()))
      text.replace(at, mark.size(), value);
  }
  return text;
}

std::string render_engine_rules(std::span<const EngineAt> engines) {
  std::string out =
      "# What engines ask of a plan\n\n"
      "`assay paramcount --plan` holds a layout against these tables; `--engine vllm@0.33` chooses engine "
      "and\n"
      "version, a bare name the newest known, and another version the nearest older one that was read. Words "
      "in\n"
      "braces stand for numbers. Where the third column is empty the engine says nothing, or nothing that "
      "is\n"
      "known. This page is what `assay paramcount --rules` prints.\n";
  if (engines.empty()) {
    for (const EngineTable* table : kTables) print(*table, nullptr, out);
  }
  for (const EngineAt& engine : engines) print(engine_table(engine.engine), &engine, out);
  return out;
}

}  // namespace assay
