#include "refimpl/handoff/handoff_ticket.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::string_view kSource = "hand-off";

constexpr std::array kFirsts = {std::pair(FirstToken::id, std::string_view("id")),
                                std::pair(FirstToken::hidden, std::string_view("hidden"))};
constexpr std::array kDrafts = {std::pair(DraftHandoff::none, std::string_view("none")),
                                std::pair(DraftHandoff::recompute, std::string_view("recompute")),
                                std::pair(DraftHandoff::rows, std::string_view("rows")),
                                std::pair(DraftHandoff::hidden, std::string_view("hidden")),
                                std::pair(DraftHandoff::inputs, std::string_view("inputs"))};

template <class List, class Value>
std::string_view name_in(const List& list, Value value) {
  for (const auto& [known, name] : list)
    if (known == value) return name;
  return "";
}
template <class List>
auto value_in(const List& list, std::string_view name) {
  std::optional<typename List::value_type::first_type> found;
  for (const auto& [value, known] : list)
    if (known == name) found = value;
  return found;
}

[[noreturn]] void refuse() {
  throw Error::input("what a hand-off says of itself makes no sense");
}

const ParsedJson& member(const ParsedJson& object, const char* key) {
  if (!object.is_object()) refuse();
  const auto found = object.find(key);
  if (found == object.end()) refuse();
  return *found;
}

TokenId token_from(const ParsedJson& value) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > 0xFFFFFFFF) refuse();
  return value.get<TokenId>();
}

std::string text_from(const ParsedJson& value) {
  if (!value.is_string()) refuse();
  return value.get<std::string>();
}

Json to_json(const std::vector<BlockKey>& keys) {
  Json list = Json::array();
  for (const BlockKey& key : keys) list.push_back(to_hex(key.bytes));
  return list;
}

std::vector<BlockKey> keys_from(const ParsedJson& list) {
  if (!list.is_array()) refuse();
  std::vector<BlockKey> keys;
  for (const ParsedJson& value : list) {
    BlockKey& key = keys.emplace_back();
    if (!from_hex(text_from(value), key.bytes)) refuse();
  }
  return keys;
}

}  // namespace

std::string_view name(FirstToken first) {
  return name_in(kFirsts, first);
}
std::string_view name(DraftHandoff draft) {
  return name_in(kDrafts, draft);
}
std::optional<FirstToken> first_token_from(std::string_view name) {
  return value_in(kFirsts, name);
}
std::optional<DraftHandoff> draft_handoff_from(std::string_view name) {
  return value_in(kDrafts, name);
}

std::string to_text(const HandoffTicket& ticket) {
  return Json{{"tokens", ticket.tokens}, {"first", name(ticket.first)}, {"draft", name(ticket.draft)},
              {"text", ticket.text},     {"rules", ticket.rules},       {"sums", ticket.sums}}
      .dump();
}

HandoffTicket ticket_from(std::string_view text) {
  const ParsedJson document = parse_json(text, kSource);
  const auto first = first_token_from(text_from(member(document, "first")));
  const auto draft = draft_handoff_from(text_from(member(document, "draft")));
  const ParsedJson &tokens = member(document, "tokens"), &as_text = member(document, "text");
  if (!first || !draft || !tokens.is_array() || !as_text.is_boolean()) refuse();
  HandoffTicket ticket{.tokens = {},
                       .first = *first,
                       .draft = *draft,
                       .text = as_text.get<bool>(),
                       .rules = text_from(member(document, "rules")),
                       .sums = text_from(member(document, "sums"))};
  for (const ParsedJson& token : tokens) ticket.tokens.push_back(token_from(token));
  return ticket;
}

std::vector<BlockKey> seal_heads(std::span<const double> rows, std::size_t row_numbers, std::uint64_t heads) {
  std::vector<BlockKey> seals;
  const std::size_t head = row_numbers / heads;
  for (std::uint64_t h = 0; h < heads && row_numbers > 0; ++h) {
    std::vector<std::byte> bytes;
    for (std::size_t at = h * head; at < rows.size(); at += row_numbers)
      put_numbers(bytes, rows.subspan(at, head), NumberWidth::f64);
    seals.push_back(sha256_of(bytes));
  }
  return seals;
}

void seal_units(const StateCut& cut, std::span<const double> state, std::vector<BlockKey>& seals) {
  const std::size_t before = seals.size();
  seals.resize(before + cut.units);
  for (const StateUnit& unit : cut.here) {
    std::vector<std::byte> bytes;
    put_numbers(bytes, take_units(cut, state, unit.first, unit.count), NumberWidth::f64);
    seals[before + unit.index] = sha256_of(bytes);
  }
}

namespace {

// Of all units those that `mine` has a digest of.
std::vector<BlockKey> sealed_in(const std::vector<BlockKey>& all, const std::vector<BlockKey>& mine) {
  if (mine.empty()) return {};
  std::vector<BlockKey> some = all;
  for (std::size_t i = 0; i < std::min(all.size(), mine.size()); ++i)
    if (mine[i] == BlockKey()) some[i] = {};
  return some;
}

}  // namespace

std::string first_difference(const std::vector<LayerSeal>& wanted, const std::vector<LayerSeal>& found) {
  if (wanted.size() != found.size())
    return fmt::format("{} layers in place of {}", found.size(), wanted.size());
  for (std::size_t layer = 0; layer < wanted.size(); ++layer) {
    const auto differs = [&](std::string_view what, const auto& a, const auto& b) {
      for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i)
        if (i >= a.size() || i >= b.size() || a[i] != b[i])
          return fmt::format("layer {}: {} {}", layer, what, i);
      return std::string();
    };
    const LayerSeal &w = wanted[layer], &f = found[layer];
    const auto own = [&](const std::vector<BlockKey>& all, const std::vector<BlockKey>& mine) {
      if (f.first_head == w.first_head && mine.size() == all.size()) return all;
      std::vector<BlockKey> some;
      for (std::uint64_t head = f.first_head; head < f.first_head + mine.size(); ++head)
        if (head >= w.first_head && head - w.first_head < all.size())
          some.push_back(all[head - w.first_head]);
      return some;
    };
    for (const std::string& difference :
         {differs("keys of head", own(w.keys, f.keys), f.keys),
          differs("values of head", own(w.values, f.values), f.values),
          differs("heads of a state", sealed_in(w.states, f.states), f.states)})
      if (!difference.empty()) return difference;
  }
  return {};
}

namespace {

// One rank's digests into those of all heads; an empty one: nobody's yet.
void merge(std::vector<BlockKey>& all, const std::vector<BlockKey>& some, std::uint64_t first,
           std::size_t layer) {
  constexpr std::uint64_t kMostHeads = 1 << 20;
  if (first > kMostHeads || some.size() > kMostHeads) refuse();
  all.resize(std::max<std::size_t>(all.size(), first + some.size()));
  for (std::size_t i = 0; i < some.size(); ++i) {
    BlockKey& to = all[first + i];
    if (some[i] == BlockKey()) continue;
    if (to != BlockKey() && to != some[i])
      throw Error::input(
          fmt::format("layer {}: ranks of the prefill had head {} differently", layer, first + i));
    to = some[i];
  }
}

}  // namespace

std::vector<LayerSeal> merged_seals(const std::vector<std::vector<LayerSeal>>& of_ranks) {
  std::vector<LayerSeal> all = of_ranks.front();
  if (of_ranks.size() == 1) return all;
  for (LayerSeal& seal : all) seal = {};
  for (const std::vector<LayerSeal>& rank : of_ranks) {
    if (rank.size() != all.size())
      throw Error::input("ranks of the prefill have different numbers of layers");
    for (std::size_t layer = 0; layer < all.size(); ++layer) {
      merge(all[layer].keys, rank[layer].keys, rank[layer].first_head, layer);
      merge(all[layer].values, rank[layer].values, rank[layer].first_head, layer);
      merge(all[layer].states, rank[layer].states, 0, layer);
    }
  }
  for (std::size_t layer = 0; layer < all.size(); ++layer)
    for (const auto* heads : {&all[layer].keys, &all[layer].values, &all[layer].states})
      for (std::size_t head = 0; head < heads->size(); ++head)
        if ((*heads)[head] == BlockKey())
          throw Error::input(fmt::format("layer {}: no rank of the prefill had head {}", layer, head));
  return all;
}

std::string to_text(const HandoffEnd& end) {
  Json seals = Json::array();
  for (const LayerSeal& seal : end.seals)
    seals.push_back({{"keys", to_json(seal.keys)},
                     {"values", to_json(seal.values)},
                     {"states", to_json(seal.states)},
                     {"first_head", seal.first_head}});
  Json document = {{"parts", end.parts}, {"seals", seals}};
  if (end.first) document["first"] = *end.first;
  return document.dump();
}

HandoffEnd end_from(std::string_view text) {
  const ParsedJson document = parse_json(text, kSource);
  const ParsedJson &parts = member(document, "parts"), &seals = member(document, "seals");
  if (!parts.is_number_unsigned() || !seals.is_array()) refuse();
  HandoffEnd end{.parts = parts.get<std::uint64_t>(), .first = {}, .seals = {}};
  if (const auto first = document.find("first"); first != document.end()) end.first = token_from(*first);
  for (const ParsedJson& seal : seals) {
    const ParsedJson& first = member(seal, "first_head");
    if (!first.is_number_unsigned()) refuse();
    end.seals.push_back({keys_from(member(seal, "keys")), keys_from(member(seal, "values")),
                         keys_from(member(seal, "states")), first.get<std::uint64_t>()});
  }
  return end;
}

}  // namespace assay
