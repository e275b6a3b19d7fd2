// llama.cpp's own reading of grammars, for data/make_gbnf_fixtures.py: cases as JSON in, with verdicts out.
//   {"grammar": …, "texts": […]}  ->  {"grammar": …, "parsed": true, "texts": [[text, read], …]}
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "llama-grammar.h"
#include "unicode.h"

// What llama-grammar.cpp asks of a vocabulary stays unresolved: grammars without one never reach it.
void llama_log_internal(ggml_log_level, const char*, ...) {}
extern "C" void ggml_abort(const char*, int, const char*, ...) {
  throw std::runtime_error("abort");
}

int main() {
  nlohmann::json cases = nlohmann::json::parse(std::cin);
  for (auto& one : cases) {
    const std::string grammar = one["grammar"];
    const auto make = [&] {
      return llama_grammar_init_impl(nullptr, grammar.c_str(), "root", false, nullptr, 0, nullptr, 0);
    };
    nlohmann::json verdicts = nlohmann::json::array();
    llama_grammar* first = nullptr;
    try {
      first = make();
    } catch (const std::exception&) {
    }
    one["parsed"] = first != nullptr;
    for (const std::string text : one["texts"]) {
      if (first == nullptr) break;
      llama_grammar* g = make();
      bool read = true;
      for (const auto c : unicode_cpts_from_utf8(text)) {
        llama_grammar_accept(g, c);
        if (llama_grammar_get_stacks(g).empty()) read = false;
        if (!read) break;
      }
      bool whole = false;
      for (const auto& stack : llama_grammar_get_stacks(g)) whole |= stack.empty();
      verdicts.push_back({text, read && whole});
    }
    one["texts"] = verdicts;
  }
  std::cout << cases.dump() << "\n";
}
