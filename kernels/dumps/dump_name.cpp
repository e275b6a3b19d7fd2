#include "kernels/dumps/dump_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

#include "core/system/text.h"

namespace assay::dumps {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::vector<std::string_view> split(std::string_view text, std::string_view between) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find(between, at);
    parts.push_back(text.substr(at, end - at));
    if (end == std::string_view::npos) return parts;
    at = end + between.size();
  }
}

// Where a word's number goes; nullptr: a number that is no place (a process id).
using Field = std::optional<std::uint64_t> Place::*;
struct PlaceWord {
  std::string_view word;
  Field field;
};
constexpr std::array<PlaceWord, 19> kPlaceWords = {{{"forward_pass_id", &Place::step},
                                                    {"step", &Place::step},
                                                    {"pass", &Place::step},
                                                    {"chunk", &Place::step},
                                                    {"iter", &Place::step},
                                                    {"tp_rank", &Place::tp},
                                                    {"tp", &Place::tp},
                                                    {"pp_rank", &Place::pp},
                                                    {"pp", &Place::pp},
                                                    {"stage", &Place::pp},
                                                    {"ep_rank", &Place::ep},
                                                    {"ep", &Place::ep},
                                                    {"dp_rank", &Place::dp},
                                                    {"dp", &Place::dp},
                                                    {"cp_rank", &Place::cp},
                                                    {"cp", &Place::cp},
                                                    {"rank", &Place::rank},
                                                    {"pid", nullptr},
                                                    {"world_size", nullptr}}};

const PlaceWord* place_word(std::string_view word) {
  const auto* it = std::find_if(kPlaceWords.begin(), kPlaceWords.end(),
                                [&](const PlaceWord& w) { return w.word == word; });
  return it == kPlaceWords.end() ? nullptr : it;
}

std::string_view take_digits(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  return digits;
}

// "tp0_pp1", "step-12", "rank_0_of_8": true, and the numbers in `place`, where nothing else stands there.
bool take_places(std::string_view part, Place& place) {
  const std::string text = lower(part);
  std::string_view left = text;
  Place found = place;
  while (!left.empty()) {
    const std::size_t digits = left.find_first_of("0123456789");
    if (digits == 0 || digits == std::string_view::npos) return false;
    std::string_view word = left.substr(0, digits);
    while (!word.empty() && std::string_view("_=-").find(word.back()) != std::string_view::npos)
      word.remove_suffix(1);
    const PlaceWord* known = place_word(word);
    left.remove_prefix(digits);
    const auto value = parse_u64(take_digits(left));
    if (known == nullptr || !value) return false;
    if (known->field != nullptr) found.*(known->field) = *value;
    for (const std::string_view of : {"_of_", "-of-", "of"}) {
      if (!left.starts_with(of)) continue;
      left.remove_prefix(of.size());
      if (take_digits(left).empty()) return false;
    }
    if (left.empty()) break;
    if (left.front() != '_' && left.front() != '-') return false;
    left.remove_prefix(1);
  }
  if (text.empty()) return false;
  place = found;
  return true;
}

// "step=0___rank=1___name=q___layer_id=3", as SGLang's dumper names its files.
ParsedName parse_pairs(std::string_view stem) {
  ParsedName parsed;
  std::string rest, layer;
  for (const std::string_view pair : split(stem, "___")) {
    const std::size_t equal = pair.find('=');
    if (equal == std::string_view::npos) {
      rest += fmt::format(".{}", pair);
      continue;
    }
    const std::string_view key = pair.substr(0, equal), value = pair.substr(equal + 1);
    const auto number = parse_u64(value);
    const PlaceWord* place = place_word(key);
    if (place != nullptr && number) {
      if (place->field != nullptr) parsed.place.*(place->field) = *number;
    } else if (key == "name") {
      parsed.name = value;
    } else if (key == "layer_id" && number) {
      layer = fmt::format("layers.{}.", *number);
    } else if (key == "dump_index" && number) {
      parsed.place.occurrence = *number;
    } else if (key != "recompute_status") {
      rest += fmt::format(".{}={}", key, value);
    }
  }
  parsed.name = layer + parsed.name + rest;
  return parsed;
}

struct Position {
  std::string_view word;
  int position;
};
// In the block, in the names of our taps, of modules in transformers, vLLM and SGLang, and of llama.cpp.
constexpr int kUnknownPosition = 690, kOutPosition = 700;
constexpr std::array<Position, 57> kInLayer = {{{"attn_norm", 100},
                                                {"input_layernorm", 100},
                                                {"ln_1", 100},
                                                {"q_a_proj", 110},
                                                {"q_a_layernorm", 111},
                                                {"q_b_proj", 112},
                                                {"kv_a_proj_with_mqa", 113},
                                                {"kv_a_layernorm", 114},
                                                {"latent", 114},
                                                {"kv_b_proj", 115},
                                                {"qkv_proj", 120},
                                                {"q_proj", 121},
                                                {"k_proj", 122},
                                                {"v_proj", 123},
                                                {"q_norm", 131},
                                                {"k_norm", 132},
                                                {"rotary_emb", 140},
                                                {"k_rope", 141},
                                                {"q", 150},
                                                {"qcur", 150},
                                                {"k", 151},
                                                {"kcur", 151},
                                                {"v", 152},
                                                {"vcur", 152},
                                                {"attn_context", 200},
                                                {"kqv_out", 200},
                                                {"attn", 205},
                                                {"o_proj", 210},
                                                {"attn_out", 211},
                                                {"self_attn", 212},
                                                {"attn_post_norm", 220},
                                                {"attn_residual", 230},
                                                {"ffn_inp", 230},
                                                {"mlp_norm", 300},
                                                {"ffn_norm", 300},
                                                {"post_attention_layernorm", 300},
                                                {"pre_feedforward_layernorm", 301},
                                                {"ln_2", 300},
                                                {"router_logits", 310},
                                                {"ffn_moe_logits", 310},
                                                {"mlp.gate", 310},
                                                {"router_weights", 311},
                                                {"router_choice", 311},
                                                {"gate_up_proj", 320},
                                                {"gate_proj", 320},
                                                {"up_proj", 321},
                                                {"act_fn", 322},
                                                {"experts", 330},
                                                {"down_proj", 340},
                                                {"mlp_out", 350},
                                                {"ffn_out", 350},
                                                {"mlp", 350},
                                                {"mlp_post_norm", 360},
                                                {"post_feedforward_layernorm", 360},
                                                {"out", kOutPosition},
                                                {"l_out", kOutPosition},
                                                {"output", kOutPosition}}};
constexpr std::array<Position, 11> kAfter = {{{"norm", 10},
                                              {"final_norm", 10},
                                              {"result_norm", 10},
                                              {"ln_f", 10},
                                              {"final_layernorm", 10},
                                              {"head", 20},
                                              {"lm_head", 20},
                                              {"logits", 20},
                                              {"result_output", 20},
                                              {"logits_processor", 21},
                                              {"sampler", 30}}};
constexpr std::array<std::string_view, 7> kBefore = {"embed", "embed_tokens", "embeddings",     "inp_embd",
                                                     "wte",   "wpe",          "word_embeddings"};

bool has_word(std::string_view name, std::string_view word) {
  for (std::size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word(name[at - 1])) && (end == name.size() || !is_word(name[end]))) return true;
  }
  return false;
}

// Of the longest word that the name has.
template <std::size_t N>
std::optional<int> position_in(const std::array<Position, N>& table, std::string_view name) {
  const Position* best = nullptr;
  for (const Position& p : table) {
    if (has_word(name, p.word) && (best == nullptr || p.word.size() > best->word.size())) best = &p;
  }
  return best == nullptr ? std::nullopt : std::optional(best->position);
}

// The first number that stands by itself, or after "layer", "blk" and the like: where it begins and ends.
std::optional<std::pair<std::size_t, std::size_t>> layer_digits(std::string_view name) {
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (!is_digit(name[at])) continue;
    std::size_t end = at;
    while (end < name.size() && is_digit(name[end])) ++end;
    const bool closed = end == name.size() || !is_word(name[end]);
    std::size_t word = at;
    while (word > 0 && std::isalpha(static_cast<unsigned char>(name[word - 1])) != 0) --word;
    const std::string before = lower(name.substr(word, at - word));
    const bool after_word = before == "layer" || before == "layers" || before == "blk" || before == "block";
    // "ln_1" is a norm, not layer 1
    const bool part_of_name = word == at && at >= 3 && lower(name.substr(at - 3, 3)) == "ln_";
    if (closed && (after_word || (before.empty() && !part_of_name))) return std::pair(at, end);
    at = end - 1;
  }
  return std::nullopt;
}

}  // namespace

std::string describe(const Place& place) {
  std::string text;
  const auto add = [&](std::string_view word, const std::optional<std::uint64_t>& value) {
    if (value) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", word, *value);
  };
  add("step", place.step);
  add("dp", place.dp);
  add("pp", place.pp);
  add("cp", place.cp);
  add("tp", place.tp);
  add("ep", place.ep);
  add("rank", place.rank);
  return text;
}

ParsedName parse_path(std::string_view path) {
  ParsedName parsed;
  std::vector<std::string_view> parts = split(path, "/");
  if (parts.back().find("___") != std::string_view::npos &&
      parts.back().find('=') != std::string_view::npos) {
    parsed = parse_pairs(parts.back());
    parts.pop_back();
    for (const std::string_view part : parts) take_places(part, parsed.place);
    return parsed;
  }
  for (const std::string_view part : parts) {
    if (!take_places(part, parsed.place))
      parsed.name += fmt::format("{}{}", parsed.name.empty() ? "" : ".", part);
  }
  return parsed;
}

ParsedName parse_tensor_name(std::string_view name) {
  ParsedName parsed;
  for (std::size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/')) {
    if (!take_places(name.substr(0, slash), parsed.place)) break;
    name.remove_prefix(slash + 1);
  }
  parsed.name = name;
  return parsed;
}

ForwardKey forward_key(std::string_view name) {
  const std::string text = lower(name);
  const auto digits = layer_digits(text);
  if (digits) {
    const auto layer =
        parse_u64(std::string_view(text).substr(digits->first, digits->second - digits->first));
    const bool draft = text.starts_with("mtp.");
    const std::string rest = text.substr(0, digits->first) + text.substr(digits->second);
    const int bare = rest.ends_with(".layers.") || rest == "layers." ? kOutPosition : kUnknownPosition;
    return {draft ? 3 : kLayerStage, layer.value_or(0), position_in(kInLayer, rest).value_or(bare),
            std::string(name)};
  }
  for (const std::string_view word : kBefore) {
    if (has_word(text, word)) return {0, 0, 1, std::string(name)};
  }
  if (auxiliary_of(text) != Auxiliary::none) return {0, 0, 0, std::string(name)};
  return {2, 0, position_in(kAfter, text).value_or(40), std::string(name)};
}

std::string kind_of(std::string_view name) {
  const auto digits = layer_digits(name);
  if (!digits) return std::string(name);
  return fmt::format("{}*{}", name.substr(0, digits->first), name.substr(digits->second));
}

std::optional<std::uint64_t> layer_of(std::string_view name) {
  const auto digits = layer_digits(name);
  return digits ? parse_u64(name.substr(digits->first, digits->second - digits->first)) : std::nullopt;
}

Auxiliary auxiliary_of(std::string_view name) {
  const std::string text = lower(name.substr(name.find_last_of("./") + 1));
  if (text == "input_ids" || text == "token_ids" || text == "tokens" || text == "inp_tokens")
    return Auxiliary::token_ids;
  if (text == "positions" || text == "position_ids" || text == "inp_pos") return Auxiliary::positions;
  return text == "attention_mask" ? Auxiliary::mask : Auxiliary::none;
}

}  // namespace assay::dumps
