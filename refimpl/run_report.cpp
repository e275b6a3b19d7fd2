#include "refimpl/run_report.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numeric>

#include "core/system/json.h"
#include "core/system/table.h"
#include "core/system/text.h"

namespace assay {
namespace {

// VmHWM, which begins anew with the program; what getrusage() says is never less than the process had that
// started it.
std::uint64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
  }
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

double rate(std::size_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

}  // namespace

LikelyTokens likely_tokens(std::span<const double> logits, TokenId chosen, std::size_t count) {
  const double sum = log_sum_exp(logits);
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(count, order.size()));
  std::partial_sort(order.begin(), end, order.end(), [&](TokenId a, TokenId b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  });
  LikelyTokens likely = {chosen, logits[chosen] - sum, {}};
  for (auto id = order.begin(); id != end; ++id) likely.likeliest.emplace_back(*id, logits[*id] - sum);
  return likely;
}

Json to_json(const LikelyTokens& likely) {
  Json top = Json::array();
  for (const auto& [id, log_probability] : likely.likeliest)
    top.push_back({{"id", id}, {"logprob", log_probability}});
  return {{"id", likely.chosen}, {"logprob", likely.log_probability}, {"top", std::move(top)}};
}

Json to_json(const EngineTiming& timing, double load_seconds) {
  return {{"load_seconds", load_seconds},
          {"prefill_tokens", timing.prefill_tokens},
          {"prefill_seconds", timing.prefill_seconds},
          {"decode_tokens", timing.decode_tokens},
          {"decode_seconds", timing.decode_seconds},
          {"steps", timing.steps},
          {"peak_bytes", peak_bytes()}};
}

Json to_json(const TextLoss& loss) {
  Json json = {{"tokens", loss.tokens},
               {"loss", loss.mean()},
               {"perplexity", loss.perplexity()},
               {"windows", loss.windows},
               {"context", loss.context}};
  if (!loss.against) return json;
  const auto tokens = static_cast<double>(loss.tokens);
  json["kl"] = loss.divergence / tokens;
  json["same_choice"] = static_cast<double>(loss.same_choice) / tokens;
  return json;
}

Json to_json(const std::vector<Claim>& claims) {
  Json list = Json::array();
  for (const Claim& claim : claims)
    list.push_back({{"name", claim.name},
                    {"statement", claim.statement},
                    {"measure", claim.measure},
                    {"error", claim.error},
                    {"budget", claim.budget},
                    {"promised", claim.promised},
                    {"holds", claim.holds()}});
  return list;
}

Json describe_run(const OpenModel& model, const RunSettings& settings) {
  return {{"source", settings.model},
          {"family", model.weights.tree().family},
          {"title", model.weights.tree().title},
          {"vocabulary", model.model->vocabulary()},
          {"context", model.model->context()},
          {"precision", name(model.arithmetic.precision)},
          {"kernels", model.kernels.name},
          {"variant", settings.variant},
          {"seed", settings.sampling.seed}};
}

std::string timing_line(const EngineTiming& timing, double load_seconds) {
  std::string line = fmt::format("load {}", human_duration(load_seconds));
  const auto add = [&](std::string_view what, std::size_t tokens, double seconds) {
    if (tokens != 0) line += fmt::format("; {} {} tokens, {:.0f} tok/s", what, tokens, rate(tokens, seconds));
  };
  add("prefill", timing.prefill_tokens, timing.prefill_seconds);
  add("decode", timing.decode_tokens, timing.decode_seconds);
  return line + fmt::format("; peak memory {}", human_bytes(peak_bytes()));
}

std::string claim_table(const std::vector<Claim>& claims) {
  Table table(
      {"claim", "error", "budget", "", "of"},
      {Table::Align::left, Table::Align::right, Table::Align::right, Table::Align::left, Table::Align::left});
  for (const Claim& claim : claims)
    table.add({claim.statement, claim.error == 0 ? "0" : fmt::format("{:.2e}", claim.error),
               !claim.promised     ? ""
               : claim.budget == 0 ? "0"
                                   : fmt::format("{:.2e}", claim.budget),
               !claim.promised ? "not promised"
               : claim.holds() ? "holds"
                               : "REFUTED",
               claim.measure});
  return table.render();
}

std::string likely_line(const LikelyTokens& likely, const Tokenizer* tokenizer) {
  const auto show = [&](TokenId id, double log_probability) {
    const std::string piece = tokenizer == nullptr || id >= tokenizer->vocab_size()
                                  ? std::string()
                                  : fmt::format(" \"{}\"", escape_for_terminal(tokenizer->piece(id)));
    return fmt::format("{:.4f} {}{}", log_probability, id, piece);
  };
  std::string line = fmt::format("{} |", show(likely.chosen, likely.log_probability));
  for (const auto& [id, log_probability] : likely.likeliest)
    line += fmt::format("  {}", show(id, log_probability));
  return line;
}

}  // namespace assay
