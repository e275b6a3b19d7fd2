#include "kernels/compare/tensors.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "core/model/held_option.h"
#include "core/model/tensor_digests.h"
#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/json.h"
#include "core/system/not_empty.h"
#include "core/system/output_paths.h"
#include "core/system/text.h"
#include "core/system/threads.h"

namespace assay {
namespace {

constexpr std::size_t kShown = 20;
constexpr std::uint64_t kLargestList = 1ull << 30;
constexpr std::size_t kShortDigits = 16;

struct TensorSettings {
  CommonOptions common;
  HeldSettings held;
  std::string a, b;
};

// Tensors of a live model that no checkpoint holds.
bool is_buffer(std::string_view name) {
  constexpr std::string_view kBuffers[] = {"cos_sin_cache", "inv_freq",   "freqs_cis", "_k_scale",
                                           "_v_scale",      "_q_scale",   "k_scale",   "v_scale",
                                           "_weight_fp32",  "_prob_scale"};
  return std::any_of(std::begin(kBuffers), std::end(kBuffers),
                     [&](std::string_view part) { return name.ends_with(part); });
}

using RankedName = std::pair<std::string_view, std::uint64_t>;
using DigitsByName = std::map<RankedName, std::string_view>;

DigitsByName by_name(const TensorList& list) {
  DigitsByName map;
  for (const ListedTensor& tensor : list.tensors)
    for (const std::uint64_t rank : tensor.ranks) map.emplace(RankedName{tensor.name, rank}, tensor.digits);
  return map;
}

std::set<std::string_view> unlisted(const TensorList& list) {
  std::set<std::string_view> names;
  for (const UnlistedTensor& one : list.unlisted) names.insert(one.name);
  return names;
}

class ListComparer {
 public:
  ListComparer(const TensorList& a, const TensorList& b)
      : a_(by_name(a)), b_(by_name(b)), unlisted_a_(unlisted(a)), unlisted_b_(unlisted(b)) {
    for (const auto& [name, digits] : b_) names_of_b_.emplace(short_of(digits), name);
    for (const TensorList* list : {&a, &b})
      for (const std::string& name : list->contradicted)
        made_.differences.push_back({TensorDifference::Kind::replicas, name});
  }

  TensorComparison compare() {
    for (const auto& [name, digits] : a_) {
      const auto other = b_.find(name);
      if (other == b_.end())
        only_in_one(name, TensorDifference::Kind::only_in_a, unlisted_b_, elsewhere(name, digits));
      else
        hold_against(name, digits, other->second);
    }
    for (const auto& [name, digits] : b_)
      if (!a_.contains(name)) only_in_one(name, TensorDifference::Kind::only_in_b, unlisted_a_, {});
    return std::move(made_);
  }

 private:
  static std::string_view short_of(std::string_view digits) { return digits.substr(0, kShortDigits); }

  void hold_against(const RankedName& name, std::string_view a, std::string_view b) {
    const std::size_t digits = std::min(a.size(), b.size());
    if (a.substr(0, digits) != b.substr(0, digits)) {
      made_.differences.push_back(
          {TensorDifference::Kind::differs, std::string(name.first), name.second, elsewhere(name, a)});
      return;
    }
    ++made_.equal;
    made_.short_only += digits == kShortDigits;
  }
  void only_in_one(const RankedName& name, TensorDifference::Kind kind,
                   const std::set<std::string_view>& told, std::string elsewhere) {
    if (is_buffer(name.first))
      ++made_.buffers;
    else if (told.contains(name.first))
      ++made_.not_told;
    else
      made_.differences.push_back({kind, std::string(name.first), name.second, std::move(elsewhere)});
  }
  // The name that B has for these bytes, of the same rank where it has one.
  std::string elsewhere(const RankedName& name, std::string_view digits) const {
    std::string found;
    const auto [begin, end] = names_of_b_.equal_range(short_of(digits));
    for (auto at = begin; at != end; ++at) {
      const auto& [other, rank] = at->second;
      if (rank == name.second) return std::string(other);
      found = fmt::format("{} of rank {}", other, rank);
    }
    return found;
  }

  const DigitsByName a_, b_;
  const std::set<std::string_view> unlisted_a_, unlisted_b_;
  std::multimap<std::string_view, RankedName> names_of_b_;
  TensorComparison made_;
};

bool is_list(const std::string& path) {
  return fs::is_regular_file(path) && !path.ends_with(".safetensors") && !path.ends_with(".gguf") &&
         !path.ends_with(".index.json");
}

TensorList list_of(const std::string& path, const TensorSettings& settings) {
  if (is_list(path)) return parse_tensor_list(read_small_file(path, kLargestList), path);
  const OpenedModel model(path, settings.common.jobs);
  model.throw_errors();
  return as_list(tensor_digests(model, settings.held.as, settings.common.jobs, settings.common.progress),
                 settings.held.as);
}

std::string_view name(TensorDifference::Kind kind) {
  constexpr std::string_view kNames[] = {"DIFFERS", "ONLY IN A", "ONLY IN B", "REPLICAS DIFFER"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string line_of(const TensorDifference& difference, bool ranks) {
  std::string line = fmt::format("{}: {}", escape_for_terminal(difference.name), name(difference.kind));
  if (ranks && difference.kind != TensorDifference::Kind::replicas)
    line += fmt::format(" at rank {}", difference.rank);
  if (!difference.elsewhere.empty())
    line += fmt::format(", its bytes are B's {}", escape_for_terminal(difference.elsewhere));
  return line;
}

Json document(const TensorComparison& made) {
  Json differences = Json::array();
  for (const TensorDifference& one : made.differences) {
    Json entry = {{"name", one.name}, {"what", name(one.kind)}, {"rank", one.rank}};
    if (!one.elsewhere.empty()) entry["elsewhere"] = one.elsewhere;
    differences.push_back(std::move(entry));
  }
  return {{"schema", "assay.compare.tensors/1"},
          {"equal", made.equal},
          {"equal_by_64_bits", made.short_only},
          {"buffers", made.buffers},
          {"not_told", made.not_told},
          {"differences", std::move(differences)},
          {"passed", made.passed()}};
}

void tell(const TensorComparison& made, bool ranks, const Output& output) {
  for (std::size_t i = 0; i < std::min(kShown, made.differences.size()); ++i)
    output.paint(line_of(made.differences[i], ranks), Style::red);
  if (made.differences.size() > kShown)
    output.line(fmt::format("… and {} more; --json FILE has all", made.differences.size() - kShown));
  std::string also;
  if (made.short_only > 0) also += fmt::format(", {} of them by 64 bits alone", made.short_only);
  if (made.not_told > 0) also += fmt::format("; {} not told", made.not_told);
  if (made.buffers > 0) also += fmt::format("; {} buffers of a live model left aside", made.buffers);
  output.line(fmt::format("{} tensors equal{}", made.equal, also));
  if (made.equal == 0)
    output.line("no name is in both with the same bytes: are both sides under the same --engine and --tp?");
  output.paint(made.passed() ? "OK" : "FAILED", made.passed() ? Style::green : Style::red);
}

int run_compare_tensors(const TensorSettings& settings) {
  check_grid(settings.held.as.grid);
  check_outputs({settings.common.json});
  if (is_list(settings.a) && is_list(settings.b) && settings.held.asked())
    throw Error::usage("--engine, --tp, --ep and --dtype say how a model is held, and both sides are lists");
  const TensorList a = list_of(settings.a, settings), b = list_of(settings.b, settings);
  if (interrupted()) return kExitInterrupted;
  const TensorComparison made = compare_lists(a, b);
  const Output output(settings.common.json);
  tell(made, std::max(a.ranks, b.ranks) > 1, output);
  output.json(document(made));
  return made.passed() ? kExitOk : kExitCheckFailed;
}

constexpr const char* kTensorExamples =
    "  assay compare tensors MODEL live.json --engine vllm --tp 4   a dump of the engine's weights "
    "(docs/tensors.md)\n"
    "  assay compare tensors trainer.json rollout.json              two dumps\n"
    "  assay compare tensors MODEL OTHER                            two checkpoints, tensor by tensor as "
    "stored\n"
    "\nExit codes: 0 all equal, 1 something differs or is missing, 2 wrong usage or unreadable input.";

}  // namespace

TensorComparison compare_lists(const TensorList& a, const TensorList& b) {
  return ListComparer(a, b).compare();
}

void add_compare_tensors(CLI::App& compare, Action& action) {
  auto settings = std::make_shared<TensorSettings>();
  TensorSettings& s = *settings;
  CLI::App& command = *compare.add_subcommand(
      "tensors", "The SHA-256 of every tensor, of checkpoints and of weights that engines hold");
  command.add_option("A", s.a, "A model, or a list of tensors and their SHA-256")
      ->required()
      ->check(not_empty());
  command.add_option("B", s.b, "Likewise")->required()->check(not_empty());
  add_held_options(command, s.held);
  add_common_options(command, s.common);
  set_examples(command, kTensorExamples);
  command.callback([settings, &action] { action = [settings] { return run_compare_tensors(*settings); }; });
}

}  // namespace assay
