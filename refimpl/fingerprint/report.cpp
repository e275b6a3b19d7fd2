#include "refimpl/fingerprint/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/system/json.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::size_t kPlotColumns = 72;
constexpr int kPlotRows = 10, kMostPowers = 20;

Json spectrum_json(const Spectrum& s) {
  return {{"contexts", s.contexts}, {"tokens", s.tokens}, {"rms", s.rms}, {"values", s.values}};
}

Json rank_json(const RankFound& rank) {
  Json one = {{"rank", rank.rank ? Json(*rank.rank) : Json(nullptr)}};
  if (rank.rank) {
    one["last_that_counts"] = rank.last;
    one["next"] = rank.next;
    one["noise_floor"] = rank.floor;
    one["noise"] = rank.noise;
  } else {
    one["why"] = rank.why;
  }
  return one;
}

// Largest first, from left to right; a line stands for one or more whole powers of ten.
std::vector<std::string> plot_lines(const std::vector<double>& values) {
  std::vector<int> powers;
  for (const double value : values)
    powers.push_back(static_cast<int>(std::floor(std::log10(std::max(value, 1e-300)))));
  const int most = powers.front(), least = std::max(powers.back(), most - kMostPowers);
  const int step = std::max(1, (most - least + kPlotRows) / kPlotRows);
  const std::size_t columns = std::min(kPlotColumns, powers.size());
  std::vector<std::string> lines;
  for (int from = most; from > least - step; from -= step) {
    std::string line = fmt::format("{:>6} ", fmt::format("1e{}", from));
    for (std::size_t i = 0; i < columns && powers[i * powers.size() / columns] >= from; ++i) line += "█";
    lines.push_back(std::move(line));
  }
  lines.push_back(fmt::format("       1{:>{}}", powers.size(), columns - 1));
  return lines;
}

}  // namespace

std::string verdict_of(const Fingerprint& found) {
  if (!found.hidden) return fmt::format("CANNOT TELL: {}", found.cannot);
  const std::string cap = found.soft_cap ? fmt::format(", behind a soft cap of {:.6g}", *found.soft_cap) : "";
  return fmt::format("FOUND: hidden size {}{}", found.hidden->size, cap);
}

std::vector<std::string> account_of(const Fingerprint& found) {
  std::vector<std::string> lines;
  if (found.way)
    lines.push_back(fmt::format("asked: {}; prompts of {}; {} requests", in_words(*found.way), found.prompts,
                                found.requests));
  if (found.vocabulary) lines.push_back(fmt::format("vocabulary: {} tokens", *found.vocabulary));
  if (found.logits.contexts == 0) return lines;
  lines.push_back(fmt::format("{} vectors of {} tokens; asked again {:.2g} apart at most",
                              found.logits.contexts, found.logits.tokens, found.asked_again));
  if (!found.rank.rank) return lines;
  lines.push_back(fmt::format(
      "rank of the logits {}: singular value {} is {:.3g}, {} is {:.2g}; noise alone reaches {:.2g}",
      *found.rank.rank, *found.rank.rank, found.rank.last, *found.rank.rank + 1, found.rank.next,
      found.rank.floor));
  if (found.hidden)
    lines.push_back(fmt::format("rank of their differences {}: {}", *found.rank_of_differences.rank,
                                found.hidden->because));
  return lines;
}

std::string published_in_words(const Fingerprint& found) {
  const std::vector<PublishedSize> like = published_like(found);
  if (like.empty()) return "no published config that is known here has it";
  std::string both, size;
  for (const PublishedSize& each : like) {
    std::string& list = found.vocabulary == each.vocabulary ? both : size;
    list += fmt::format("{}{}", list.empty() ? "" : ", ", each.model);
  }
  if (both.empty()) return fmt::format("published with it: {}", size);
  return fmt::format("published with it and this vocabulary: {}{}", both,
                     size.empty() ? "" : fmt::format("; with another vocabulary: {}", size));
}

void render_text(const Fingerprint& found, const Output& output) {
  output.line(
      fmt::format("{}{}, {}", escape_for_terminal(found.url), found.route,
                  found.model.empty() ? "no model named" : "model " + escape_for_terminal(found.model)));
  for (const std::string& line : account_of(found)) output.line(line);
  if (!found.logits.values.empty()) {
    output.line("singular values of the logits:");
    for (const std::string& line : plot_lines(found.logits.values)) output.line(line);
  }
  if (found.hidden) output.line(published_in_words(found));
  output.paint(escape_for_terminal(verdict_of(found)), found.hidden ? Style::green : Style::yellow);
}

Json render_json(const Fingerprint& found) {
  Json published = Json::array();
  for (const PublishedSize& size : published_like(found))
    published.push_back({{"model", size.model},
                         {"vocabulary", size.vocabulary},
                         {"same_vocabulary", found.vocabulary == size.vocabulary}});
  return {{"schema", "assay.fingerprint/1"},
          {"url", found.url},
          {"route", found.route},
          {"model", found.model},
          {"way", found.way ? Json(in_words(*found.way)) : Json(nullptr)},
          {"requests", found.requests},
          {"vocabulary", found.vocabulary ? Json(*found.vocabulary) : Json(nullptr)},
          {"asked_again", found.asked_again},
          {"hidden_size", found.hidden ? Json(found.hidden->size) : Json(nullptr)},
          {"because", found.hidden ? Json(found.hidden->because) : Json(nullptr)},
          {"at_least", found.at_least ? Json(*found.at_least) : Json(nullptr)},
          {"soft_cap", found.soft_cap ? Json(*found.soft_cap) : Json(nullptr)},
          {"logits", {{"spectrum", spectrum_json(found.logits)}, {"found", rank_json(found.rank)}}},
          {"differences",
           {{"spectrum", spectrum_json(found.differences)}, {"found", rank_json(found.rank_of_differences)}}},
          {"published", std::move(published)},
          {"interrupted", found.interrupted},
          {"verdict", verdict_of(found)}};
}

}  // namespace assay
