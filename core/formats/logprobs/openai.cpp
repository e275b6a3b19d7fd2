// OpenAI's completions and chat, as OpenAI, vLLM, SGLang, llama-server and assay serve answer:
//
//   {"choices": [{"logprobs": {"tokens": ["a", …], "token_logprobs": [null, …], "top_logprobs": [null, {"a": -0.1}]}}]}
//   {"choices": [{"logprobs": {"content": [{"token": "a", "bytes": [97], "logprob": -0.1, "top_logprobs": […]}]}}]}
//
// Beside it, where the server gives them: prompt_token_ids and token_ids (vLLM, assay serve), prompt_logprobs (vLLM, with every echo).
// A line of a batch's output holds the answer under response.body. The Responses API (OpenAI, vLLM):
//
//   {"output": [{"type": "message", "content": [{"type": "output_text", "logprobs": [{"token": "a", "logprob": -0.1, …}]}]}]}
#include <fmt/format.h>

#include <algorithm>

#include "core/formats/logprobs/response_json.h"

namespace assay::logprobs {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Names of tokens whose bytes are no text: "token_id:17", "bytes:\xe2\x82".
void take_name(std::string_view name, std::string& text, std::optional<std::uint32_t>& id) {
  constexpr std::string_view kAsId = "token_id:", kAsBytes = "bytes:";
  text = name;
  if (name.starts_with(kAsId)) {
    id = token_id_of_text(name.substr(kAsId.size()));
    if (id) text.clear();  // its bytes are not told
    return;
  }
  if (!name.starts_with(kAsBytes)) return;
  std::string bytes;
  std::string_view rest = name.substr(kAsBytes.size());
  while (rest.size() >= 4 && rest[0] == '\\' && rest[1] == 'x' && hex_digit(rest[2]) >= 0 &&
         hex_digit(rest[3]) >= 0) {
    bytes += static_cast<char>(hex_digit(rest[2]) * 16 + hex_digit(rest[3]));
    rest.remove_prefix(4);
  }
  if (rest.empty()) text = bytes;
}

// The three lists of a completion.
std::vector<SavedToken> parallel_lists(const OrderedJson& logprobs, const ResponsePlace& place) {
  const OrderedJson* names = list_member(logprobs, "tokens");
  const OrderedJson* own = list_member(logprobs, "token_logprobs");
  const OrderedJson* top = list_member(logprobs, "top_logprobs");
  if (names == nullptr || own == nullptr) throw place.error("logprobs have no tokens and token_logprobs");
  if (names->size() != own->size() || (top != nullptr && !top->empty() && top->size() != own->size()))
    throw place.error(fmt::format("{} tokens, {} token_logprobs, {} top_logprobs", names->size(), own->size(),
                                  top == nullptr ? 0 : top->size()));
  std::vector<SavedToken> tokens;
  for (std::size_t i = 0; i < own->size(); ++i) {
    SavedToken token;
    if ((*names)[i].is_string())
      take_name((*names)[i].get_ref<const std::string&>(), token.text, token.id);
    else
      token.id = token_id_of((*names)[i], place);
    token.logprob = logprob_or_null((*own)[i], place);
    if (top != nullptr && i < top->size() && (*top)[i].is_object()) {
      for (const auto& [name, value] : (*top)[i].get_ref<const OrderedJson::object_t&>()) {
        SavedCandidate candidate;
        take_name(name, candidate.text, candidate.id);
        candidate.logprob = logprob_of(value, place);
        token.top.push_back(std::move(candidate));
      }
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

std::vector<SavedToken> tokens_of(const OrderedJson& logprobs, const ResponsePlace& place) {
  if (const OrderedJson* content = list_member(logprobs, "content")) return listed_tokens(*content, place);
  return parallel_lists(logprobs, place);
}

const OrderedJson* beside(const OrderedJson& choice, const OrderedJson& answer, std::string_view key) {
  const OrderedJson* found = list_member(choice, key);
  return found != nullptr ? found : list_member(answer, key);
}

// The ids that stand beside the tokens: of the prompt, which an echo repeats, and of what was written.
void join_ids(const std::vector<std::uint32_t>& prompt, const std::vector<std::uint32_t>& own,
              SavedText& text, const ResponsePlace& place) {
  std::vector<std::uint32_t> all = prompt;
  all.insert(all.end(), own.begin(), own.end());
  const bool echo = !prompt.empty() && text.tokens.size() == all.size() && text.tokens.size() != own.size();
  const std::vector<std::uint32_t>& ids = echo ? all : own;
  if (!ids.empty() && ids.size() != text.tokens.size())
    throw place.error(fmt::format("{} token_ids of {} tokens", ids.size(), text.tokens.size()));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    text.tokens[i].id = ids[i];
    text.tokens[i].generated = !echo || i >= prompt.size();
  }
  if (echo) return;
  for (SavedToken& token : text.tokens) token.generated |= !own.empty();
  std::vector<SavedToken> before;
  for (const std::uint32_t id : prompt) before.push_back(bare_token(id));
  text.tokens.insert(text.tokens.begin(), before.begin(), before.end());
}

SavedText text_of_choice(const OrderedJson& choice, const OrderedJson& answer, const ResponsePlace& place) {
  SavedText text;
  text.name = place.name;
  if (const OrderedJson* logprobs = member(choice, "logprobs")) text.tokens = tokens_of(*logprobs, place);
  const OrderedJson* prompt = beside(choice, answer, "prompt_token_ids");
  const OrderedJson* own = list_member(choice, "token_ids");
  const OrderedJson* scored = beside(choice, answer, "prompt_logprobs");
  const std::vector<std::uint32_t> prompt_ids =
      prompt == nullptr ? std::vector<std::uint32_t>() : token_ids_of(*prompt, place);
  // Without its tokens' probabilities, ids of what was written say nothing.
  const std::vector<std::uint32_t> own_ids =
      own == nullptr || text.tokens.empty() ? std::vector<std::uint32_t>() : token_ids_of(*own, place);
  // An echo's first token has no probability; a text that begins with one has something before it.
  const bool echo = !text.tokens.empty() && !text.tokens.front().logprob;
  if (scored == nullptr) {
    join_ids(prompt_ids, own_ids, text, place);
    if (prompt_ids.empty() && !echo) text.unknown_before = 1;
    return text;
  }
  // vLLM's echo has the prompt's tokens once more. Where none are to be written (max_tokens 0) it tells the id of one all the same.
  if (echo && text.tokens.size() >= scored->size())
    text.tokens.erase(text.tokens.begin(), text.tokens.begin() + static_cast<std::ptrdiff_t>(scored->size()));
  if (!text.tokens.empty()) join_ids({}, own_ids, text, place);
  std::vector<SavedToken> whole = vllm_prompt(*scored, prompt_ids, place);
  for (SavedToken& token : text.tokens) token.generated = true;
  whole.insert(whole.end(), text.tokens.begin(), text.tokens.end());
  text.tokens = std::move(whole);
  return text;
}

// What a response of the Responses API wrote: one text, whose parts follow each other.
bool read_output(const OrderedJson& output, const ResponsePlace& place, SavedResponses& saved) {
  SavedText text;
  text.name = place.name;
  for (const OrderedJson& item : output) {
    const OrderedJson* parts = list_member(item, "content");
    if (parts == nullptr) continue;
    for (const OrderedJson& part : *parts) {
      const OrderedJson* logprobs = list_member(part, "logprobs");
      if (logprobs == nullptr) continue;
      const std::vector<SavedToken> tokens = listed_tokens(*logprobs, place);
      text.tokens.insert(text.tokens.end(), tokens.begin(), tokens.end());
    }
  }
  if (text.tokens.empty()) return false;
  text.unknown_before = 1;
  saved.texts.push_back(std::move(text));
  saved.format = ResponseFormat::openai;
  return true;
}

}  // namespace

bool read_openai(const OrderedJson& response, const ResponsePlace& place, SavedResponses& saved) {
  if (const OrderedJson* batch = member(response, "response"))
    if (const OrderedJson* body = member(*batch, "body")) return read_openai(*body, place, saved);
  if (const OrderedJson* output = list_member(response, "output"))
    if (read_output(*output, place, saved)) return true;
  const OrderedJson* choices = list_member(response, "choices");
  if (choices == nullptr) {
    const bool bare =
        list_member(response, "token_logprobs") != nullptr && list_member(response, "tokens") != nullptr;
    if (!bare && list_member(response, "content") == nullptr) return false;
    SavedText text;
    text.name = place.name;
    text.tokens = tokens_of(response, place);
    if (!text.tokens.empty() && text.tokens.front().logprob) text.unknown_before = 1;
    saved.texts.push_back(std::move(text));
    saved.format = ResponseFormat::openai;
    return true;
  }
  for (std::size_t i = 0; i < choices->size(); ++i) {
    ResponsePlace own = place;
    if (choices->size() > 1) own.name += fmt::format(", choice {}", i);
    saved.texts.push_back(text_of_choice((*choices)[i], response, own));
  }
  const bool vllm = member(response, "prompt_logprobs") != nullptr ||
                    std::any_of(choices->begin(), choices->end(), [](const OrderedJson& choice) {
                      return member(choice, "prompt_logprobs") != nullptr;
                    });
  saved.format = vllm ? ResponseFormat::vllm : ResponseFormat::openai;
  return true;
}

}  // namespace assay::logprobs
