// The chat options of `assay tokenize` and `assay run`, as a user gives them: what reaches the template, and
// what is refused in one line.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

const std::string kTinylm = (test::source_dir() / "data/tinylm").string();

// Everything that an option hands on, as text.
constexpr const char* kTemplate =
    "{%- for m in messages -%}<{{ m.role }}>{{ m.content }}{%- endfor -%}"
    "{%- if tools -%}[{{ tools | map(attribute='function.name') | join(',') }}]{%- endif -%}"
    "{%- if documents -%}({{ documents[0].title }}){%- endif -%}"
    "{%- if enable_thinking is defined -%}{think {{ enable_thinking }}}{%- endif -%}"
    "{%- if effort is defined -%}{{ effort }}{%- endif -%}"
    "{%- if dated is defined -%}{{ strftime_now('%d %b %Y') }}{%- endif -%}"
    "{%- if bad is defined -%}{{ raise_exception('not ' ~ bad) }}{%- endif -%}"
    "{%- if add_generation_prompt -%}<assistant>{%- endif -%}";

class ChatOptions : public testing::Test {
 protected:
  ChatOptions() { test::write_file(dir_ / "own.jinja", kTemplate); }
  std::string file(const std::string& name, const std::string& text) const {
    test::write_file(dir_ / name, text);
    return (dir_ / name).string();
  }
  ProcessResult tokenize(std::vector<std::string> options) const {
    options.insert(options.begin(), {"tokenize", kTinylm, "--json", "-"});
    options.insert(options.end(), {"--chat-template", (dir_ / "own.jinja").string()});
    return assay(options);
  }
  std::string prompt(const std::vector<std::string>& options) const {
    const ProcessResult result = tokenize(options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out).at("text");
  }
  TempDir dir_;
};

TEST_F(ChatOptions, ReachTheTemplate) {
  EXPECT_EQ(prompt({"--chat", "Hi"}), "<user>Hi<assistant>");
  EXPECT_EQ(prompt({"--chat", "Hi", "--system", "Be brief"}), "<system>Be brief<user>Hi<assistant>");
  EXPECT_EQ(prompt({"--chat", "Hi", "--no-generation-prompt"}), "<user>Hi");
  EXPECT_EQ(prompt({"--chat", "Hi", "--thinking", "off"}), "<user>Hi{think False}<assistant>");
  EXPECT_EQ(prompt({"--chat", "Hi", "--thinking", "on"}), "<user>Hi{think True}<assistant>");
  EXPECT_EQ(prompt({"--chat", "Hi", "--template-kwargs", R"({"effort": "low"})"}), "<user>Hilow<assistant>");
  EXPECT_EQ(prompt({"--chat", "Hi", "--template-kwargs", R"({"dated": 1})", "--now", "2026-03-09"}),
            "<user>Hi09 Mar 2026<assistant>");
  const std::string tools = file("tools.json", R"([{"type": "function", "function": {"name": "look_up"}}])");
  EXPECT_EQ(prompt({"--chat", "Hi", "--tools", tools}), "<user>Hi[look_up]<assistant>");
  const std::string documents = file("documents.json", R"([{"title": "A", "text": "b"}])");
  EXPECT_EQ(prompt({"--chat", "Hi", "--documents", documents}), "<user>Hi(A)<assistant>");
}

TEST_F(ChatOptions, AConversationOfSeveralTurns) {
  const std::string messages = file("chat.json", R"([{"role": "user", "content": "a"},
      {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}])");
  EXPECT_EQ(prompt({"--messages", messages}), "<user>a<assistant>b<user>c<assistant>");
  const std::string unfinished = file("open.json", R"([{"role": "user", "content": "a"},
      {"role": "assistant", "content": "It is"}])");
  EXPECT_EQ(prompt({"--messages", unfinished, "--continue-final-message"}), "<user>a<assistant>It is");
}

TEST_F(ChatOptions, WhatCannotBeIsRefusedInOneLine) {
  const auto refused = [&](const std::vector<std::string>& options, const std::string& words) {
    const ProcessResult result = tokenize(options);
    EXPECT_EQ(result.exit_code, 2) << words;
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
    EXPECT_TRUE(result.out.empty()) << words;
  };
  refused({"--chat", "Hi", "--template-kwargs", R"({"bad": "so"})"}, "the template refuses: not so");
  refused({"--chat", "Hi", "--template-kwargs", "[1]"}, "takes a JSON object");
  refused({"--chat", "Hi", "--tools", file("t.json", "{")}, "t.json");
  refused({"--messages", file("m.json", "[3]")}, "m.json");
  refused({"--messages", (dir_ / "none.json").string()}, "none.json");
  refused({"Hi", "--thinking", "on"}, "go with --chat or --messages");
  refused({"--chat", "Hi", "--now", "tomorrow"}, "--now takes a time");
}

TEST_F(ChatOptions, TheTemplateIsNamed) {
  EXPECT_NE(tokenize({"--chat", "Hi"}).err.find("note: chat template " + (dir_ / "own.jinja").string()),
            std::string::npos);
  const ProcessResult none = assay({"tokenize", kTinylm, "--chat", "Hi"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("the model brings no chat template"), std::string::npos) << none.err;
  const ProcessResult unknown = assay({"tokenize", kTinylm, "--chat", "Hi", "--chat-template", "nowhere"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("called 'nowhere'; the model has none"), std::string::npos) << unknown.err;
}

TEST_F(ChatOptions, RunGeneratesBehindTheTemplate) {
  const ProcessResult result = assay({"run", kTinylm, "-p", "Hi", "--chat", "--chat-template",
                                      (dir_ / "own.jinja").string(), "-n", "2", "--json", "-"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const ProcessResult plain = assay({"run", kTinylm, "-p", "<user>Hi<assistant>", "-n", "2", "--json", "-"});
  const auto ids = [](const ProcessResult& r) {
    return nlohmann::json::parse(r.out).at("sequences").at(0).at("prompt_ids");
  };
  nlohmann::json behind_bos = ids(plain);  // templates write their own
  behind_bos.erase(0);
  EXPECT_EQ(ids(result), behind_bos);
}

}  // namespace
}  // namespace assay::test
