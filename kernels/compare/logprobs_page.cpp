// The page of `compare logprobs`: verdict, and a strip of every text, a cell a token.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "core/system/html_page.h"
#include "core/system/text.h"
#include "kernels/compare/heat_map.h"
#include "kernels/compare/logprobs.h"

namespace assay {
namespace {

using namespace logprobs;

constexpr std::size_t kMostTexts = 200, kMostTokens = 4096;
constexpr std::string_view kTokenStrip = R"css(
.strip { line-height: 1.9; font-family: ui-monospace, monospace; font-size: .85rem; overflow-wrap: anywhere; }
.strip span { padding: 2px 1px; border-radius: 2px; white-space: pre-wrap; }
)css";

struct StripCell {
  double value = 0;
  std::string title;
};
using StripCells = std::map<std::pair<std::size_t, std::size_t>, StripCell>;

// Ids are told as their texts by `text`, which may be null; parts of characters stay ids.
std::string words_of(const SavedToken& token, const TextBehindOthers* text) {
  if (!token.text.empty()) return escape_for_terminal(token.text);
  if (!token.id) return "· ";
  const std::string made = text != nullptr && text->knows(*token.id) ? (*text)(*token.id) : std::string();
  return made.empty() || !is_valid_utf8(made) ? fmt::format("{} ", *token.id) : escape_for_terminal(made);
}

std::string strips(std::string_view title, const SavedResponses& saved, const StripCells& cells,
                   const HeatScale& scale, const TextBehindOthers* words) {
  std::string page = fmt::format("<h2>{}</h2>\n", html::escape(title));
  for (std::size_t t = 0; t < std::min(kMostTexts, saved.texts.size()); ++t) {
    const SavedText& text = saved.texts[t];
    page += fmt::format("<h3>{}</h3>\n<p class=\"strip\">", html::escape(escape_for_terminal(text.name)));
    for (std::size_t i = 0; i < std::min(kMostTokens, text.tokens.size()); ++i) {
      const auto cell = cells.find({t, i});
      const std::string shown = html::escape(words_of(text.tokens[i], words));
      page += cell == cells.end() ? fmt::format("<span>{}</span>", shown)
                                  : fmt::format("<span class=\"{}\" title=\"{}\">{}</span>",
                                                heat_class(cell->second.value, scale),
                                                html::escape(cell->second.title), shown);
    }
    page += "</p>\n";
  }
  return page;
}

StripCells judged_cells(const SideVerdict& side) {
  StripCells cells;
  for (const JudgedToken& token : side.tokens)
    cells[{token.text, token.position}] = {
        token.ratio,
        fmt::format("token {}: ln p {:.6g}, truth {:.6g}; {:.3g} × its budget of {:.2g}{}", token.position,
                    token.value, token.truth, token.ratio, token.budget,
                    token.rank ? fmt::format("; rank {}, truly {}", *token.rank, token.true_rank) : "")};
  return cells;
}

StripCells apart_cells(const MatchedPairs& matched) {
  StripCells cells;
  for (const LogprobPair& pair : matched.pairs)
    cells[{pair.text, pair.position}] = {
        std::abs(pair.delta()), fmt::format("token {}: A {:.6g}, B {:.6g}, B − A {:.3g}", pair.position,
                                            pair.a, pair.b, pair.delta())};
  return cells;
}

std::string tiles_of(const ComparedResponses& compared) {
  const LogprobComparison& found = compared.found;
  std::string tiles;
  const auto add = [&](const std::string& figure, std::string_view what) {
    tiles += html::tile(figure, what);
  };
  if (compared.b != nullptr) {
    add(with_thousands(found.figures.tokens), "tokens that both score");
    add(fmt::format("{:.3g}", found.figures.mean_abs), "mean |B − A|, nats");
    add(fmt::format("{:.3g}", found.figures.max_abs), "at most");
  }
  for (const auto& [who, side] : {std::pair{"A", &found.a}, {"B", &found.b}})
    if (*side)
      add(fmt::format("{} of {}", (*side)->beyond, (*side)->tokens.size()),
          fmt::format("tokens of {} beyond their budget", who));
  return "<div class=\"tiles\">" + tiles + "</div>\n";
}

std::string beginning(const std::string& title, const std::string& heading, CaseStatus status,
                      const std::string& verdict) {
  const std::string style = std::string(kHeatMapStyle) + std::string(kTokenStrip);
  return html::head({.title = title, .style = style}) +
         fmt::format("<main>\n<h1>{}</h1>\n<p class=\"{}\">{}</p>\n", html::escape(heading),
                     status == CaseStatus::passed ? "good" : "bad", html::escape(verdict));
}

std::string ending() {
  return "</main>\n" + std::string(html::kEnd);
}

constexpr HeatScale kBudgets = {.low = 0.01, .limit = 1, .high = 100}, kNats = {.low = 1e-6, .high = 1};

}  // namespace

std::string to_page(const CompareLogprobsSettings& settings, const ComparedResponses& compared,
                    const TextBehindOthers* words) {
  const LogprobComparison& found = compared.found;
  std::string heading = escape_for_terminal(settings.a);
  if (compared.b != nullptr) heading += " and " + escape_for_terminal(settings.b);
  std::string page = beginning("assay compare logprobs", heading, found.status, found.verdict);
  page += tiles_of(compared);
  if (found.a) page += strips("A: error by budget", compared.a, judged_cells(*found.a), kBudgets, words);
  if (found.b) page += strips("B: error by budget", *compared.b, judged_cells(*found.b), kBudgets, words);
  if (!found.a && found.matched)
    page += strips("|B − A|, nats", compared.a, apart_cells(*found.matched), kNats, words);
  return page + ending();
}

std::string to_page(const std::string& title, const std::string& heading, CaseStatus status,
                    const std::string& verdict, const std::vector<PageSide>& sides,
                    const TextBehindOthers* words) {
  std::string page = beginning(title, escape_for_terminal(heading), status, verdict), tiles;
  for (const PageSide& side : sides)
    tiles += html::tile(fmt::format("{} of {}", side.verdict.beyond, side.verdict.tokens.size()),
                        fmt::format("tokens beyond their budget, {}", side.name));
  page += "<div class=\"tiles\">" + tiles + "</div>\n";
  for (const PageSide& side : sides)
    page += strips(side.name + ": error by budget", side.saved, judged_cells(side.verdict), kBudgets, words);
  return page + ending();
}

}  // namespace assay
