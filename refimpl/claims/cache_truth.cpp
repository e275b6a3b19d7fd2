#include "refimpl/claims/cache_truth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/numeric/largest.h"
#include "core/system/error.h"
#include "refimpl/models/mapped_file.h"

namespace assay {
namespace {

constexpr std::string_view kLogits = "/logits", kChunked = "/chunked";
constexpr double kNumber = std::numeric_limits<double>::infinity();

// What is left of the largest difference where `stored` was written in float32: half a unit in its last place is the
// writing's.
double beyond_float32(const std::vector<double>& ours, const std::vector<double>& stored) {
  double difference = 0, scale = 0;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    scale = std::max(scale, std::abs(stored[i]));
    difference =
        larger_or_nan(difference, std::abs(ours[i] - stored[i]) - std::ldexp(std::abs(stored[i]), -24));
  }
  return difference / scale;
}

// Of one layer: the first token that a head keeps and should not; empty: none.
std::string kept_otherwise(std::size_t layer, const std::vector<std::vector<std::size_t>>& kept,
                           const TensorValues& truth) {
  const std::size_t heads = truth.shape.at(0), each = heads == 0 ? 0 : truth.values.size() / heads;
  if (kept.size() != heads) return fmt::format("layer {} keeps {} heads of {}", layer, kept.size(), heads);
  for (std::size_t head = 0; head < heads; ++head) {
    if (kept[head].size() != each)
      return fmt::format("layer {}, head {} keeps {} tokens where its rule keeps {}", layer, head,
                         kept[head].size(), each);
    for (std::size_t i = 0; i < each; ++i) {
      const auto wanted = static_cast<std::size_t>(truth.values[head * each + i]);
      if (kept[head][i] != wanted)
        return fmt::format("layer {}, head {} keeps token {} where its rule keeps {}", layer, head,
                           kept[head][i], wanted);
    }
  }
  return {};
}

// Its tokens read in steps; logits of all, row by row.
std::vector<double> read_in_steps(const LanguageModel& model, Ops& ops, SequenceCache& cache,
                                  std::span<const TokenId> tokens, const std::vector<std::size_t>& steps) {
  std::vector<double> logits;
  for (std::size_t at = 0, next = 0; at < tokens.size(); ++next) {
    const std::size_t count = next < steps.size() ? steps[next] : 1;
    Batch batch;
    batch.add(tokens.subspan(at, count), cache);
    const std::vector<double> rows = ops.download(model.logits(model.hidden(batch, ops, {}), ops, {}));
    require_mapped();
    logits.insert(logits.end(), rows.begin(), rows.end());
    cache.advance(count);
    at += count;
  }
  return logits;
}

}  // namespace

CacheTruth::CacheTruth(const std::filesystem::path& safetensors)
    : path_(safetensors), values_(read_tensor_values(safetensors)) {
  const std::vector<double>&tokens = at("tokens").values, &prompt = at("prompt").values;
  const auto is_id = [](double value) { return value >= 0 && value <= 0xFFFFFFFF; };
  if (prompt.size() != 1 || !(prompt[0] >= 1 && prompt[0] < static_cast<double>(tokens.size())) ||
      !std::all_of(tokens.begin(), tokens.end(), is_id) || cases().empty())
    throw Error::input("is no file of truths about caches").in(path_).remedy("data/make_cache_fixtures.py");
  for (const double token : tokens) tokens_.push_back(static_cast<TokenId>(token));
  prompt_ = static_cast<std::size_t>(prompt[0]);
}

const TensorValues& CacheTruth::at(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end())
    throw Error::input("has no such tensor").in(path_).tensor(name).remedy("data/make_cache_fixtures.py");
  return found->second;
}

std::vector<std::string> CacheTruth::cases() const {
  std::vector<std::string> names;
  for (const auto& [name, values] : values_) {
    if (name.ends_with(kLogits)) names.push_back(name.substr(0, name.size() - kLogits.size()));
  }
  return names;
}

std::shared_ptr<const CacheMethod> CacheTruth::method_of(const std::string& case_name) {
  std::string_view text = case_name;
  if (text.ends_with(kChunked)) text.remove_suffix(kChunked.size());
  return text == "full" ? nullptr : cache_method(text);
}

std::string CacheTruth::Verdict::wrong() const {
  if (!otherwise.empty()) return otherwise;
  if (error <= kAllowed) return {};
  return std::isfinite(error) ? fmt::format("logits off by {:.3g} of the largest", error)
                              : "logits that are no numbers";
}

CacheTruth::Verdict CacheTruth::compare(const std::string& case_name,
                                        const std::shared_ptr<const CacheMethod>& method,
                                        const LanguageModel& model, Ops& ops) const {
  const TensorValues& truth = at(case_name + std::string(kLogits));
  const bool right =
      truth.shape.size() == 2 && truth.shape[1] == model.vocabulary() && truth.shape[0] > 0 &&
      truth.shape[0] < tokens_.size() &&
      std::all_of(tokens_.begin(), tokens_.end(), [&](TokenId token) { return token < model.vocabulary(); });
  if (!right) throw Error::input("is about another model").in(path_).tensor(case_name);
  try {
    return read(case_name, method, model, ops);
  } catch (const Error& error) {
    return {kNumber, error.what()};
  }
}

CacheTruth::Verdict CacheTruth::read(const std::string& case_name,
                                     const std::shared_ptr<const CacheMethod>& method,
                                     const LanguageModel& model, Ops& ops) const {
  const TensorValues& truth = at(case_name + std::string(kLogits));
  const std::size_t from = tokens_.size() - truth.shape[0];  // the first row that is told
  const bool chunked = case_name.ends_with(kChunked) && from < prompt_;
  SequenceCache cache(ops, model.cache_widths(), model.context());
  if (method) cache.keep_by(method, prompt_);
  std::vector<double> said = read_in_steps(
      model, ops, cache, tokens_, chunked ? std::vector{from, prompt_ - from} : std::vector{prompt_});
  said.erase(said.begin(), said.begin() + static_cast<std::ptrdiff_t>(from * model.vocabulary()));
  Verdict verdict{beyond_float32(said, truth.values), {}};
  for (std::size_t layer = 0; layer < cache.layers() && verdict.otherwise.empty(); ++layer) {
    const LayerPolicy* policy = cache.policy(layer);
    if (policy == nullptr || policy->kept().empty()) continue;  // all are
    verdict.otherwise =
        kept_otherwise(layer, policy->kept(), at(fmt::format("{}/kept.{}", case_name, layer)));
  }
  return verdict;
}

}  // namespace assay
