#include "paramcount/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/system/error.h"
#include "core/system/text.h"
#include "paramcount/engine_rules.h"

namespace assay {
namespace {

std::string names_known() {
  std::string text;
  for (const EngineTable* table : engine_tables()) {
    text += fmt::format("{}{} (", text.empty() ? "" : ", ", table->name);
    for (const EngineVersion& version : table->known)
      text += (version == table->known.front() ? "" : ", ") + version.text();
    text += ")";
  }
  return text + ", assay";
}

// The numbers of "0.33" or "0.5.23"; what follows them (".post1", "rc2") is not looked at.
std::optional<std::vector<unsigned>> numbers_of(std::string_view text) {
  std::vector<unsigned> numbers;
  if (text.starts_with('v')) text.remove_prefix(1);
  if (text.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz.+-_") != std::string_view::npos)
    return std::nullopt;
  while (numbers.size() < 3) {
    const auto end = std::min(text.find_first_not_of("0123456789"), text.size());
    const auto number = parse_u64(text.substr(0, end));
    if (!number || *number > 100'000) return std::nullopt;
    numbers.push_back(static_cast<unsigned>(*number));
    if (end == text.size() || text[end] != '.') break;
    text.remove_prefix(end + 1);
    if (text.empty() || text[0] < '0' || text[0] > '9') break;
  }
  return numbers;
}

// The newest of `known` that begins with the numbers given, else the nearest older one.
EngineAt at_version(const EngineTable& table, std::string_view asked, std::vector<std::string>& remarks) {
  const auto numbers = numbers_of(asked);
  if (!numbers)
    throw Error::usage(fmt::format("--engine {}@{}: not a version", table.name, asked))
        .remedy("known are " + names_known());
  EngineVersion wanted;
  std::copy(numbers->begin(), numbers->end(), wanted.parts.begin());
  const EngineVersion* nearest = nullptr;
  for (const EngineVersion& version : table.known) {
    if (std::equal(numbers->begin(), numbers->end(), version.parts.begin())) return {table.engine, version};
    if (version < wanted) nearest = &version;
  }
  const EngineVersion& chosen = nearest == nullptr ? table.known.front() : *nearest;
  remarks.push_back(fmt::format("{} {} is not among the versions known: held against the rules of {}, the {}",
                                title(table.engine), asked, chosen.text(),
                                nearest == nullptr ? "oldest known" : "nearest older one"));
  return {table.engine, chosen};
}

}  // namespace

std::string_view title(Engine engine) {
  switch (engine) {
    case Engine::vllm: return "vLLM";
    case Engine::sglang: return "SGLang";
    case Engine::trtllm: return "TensorRT-LLM";
    case Engine::assay: break;
  }
  return "assay";
}

std::string EngineVersion::text() const {
  return fmt::format("{}.{}.{}", parts[0], parts[1], parts[2]);
}

std::string EngineAt::text() const {
  return fmt::format("{} {}", title(engine), version.text());
}

std::span<const EngineVersion> known_versions(Engine engine) {
  return engine_table(engine).known;
}

EngineChoice parse_engines(std::string_view text) {
  EngineChoice choice;
  if (text == "all") {
    for (const EngineTable* table : engine_tables()) choice.engines.emplace_back(table->engine);
    return choice;
  }
  for (std::string_view rest = text;;) {
    const auto comma = rest.find(',');
    const std::string_view item = trim(rest.substr(0, comma));
    const auto at = item.find('@');
    const std::string_view name = item.substr(0, at);
    const EngineTable* table = nullptr;
    for (const EngineTable* known : engine_tables()) table = known->name == name ? known : table;
    if (name == kOwnTable.name) table = &kOwnTable;
    if (table == nullptr)
      throw Error::usage(fmt::format("--engine {}: no engine known", name))
          .remedy("use all, " + names_known());
    const EngineAt found = at == std::string_view::npos
                               ? EngineAt(table->engine)
                               : at_version(*table, item.substr(at + 1), choice.remarks);
    if (std::find(choice.engines.begin(), choice.engines.end(), found) == choice.engines.end())
      choice.engines.push_back(found);
    if (comma == std::string_view::npos) return choice;
    rest = rest.substr(comma + 1);
  }
}

}  // namespace assay
