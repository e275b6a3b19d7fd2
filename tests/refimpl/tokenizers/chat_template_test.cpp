// Prompts against transformers' apply_chat_template (data/make_chat_fixtures.py).
#include "refimpl/tokenizers/chat_template.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "refimpl/tokenizers/load.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

// A tokenizer of four pieces, BOS and EOS among them.
std::unique_ptr<Tokenizer> small_tokenizer(const test::TempDir& folder, const std::string& chat_template) {
  test::write_file(folder / "tokenizer.json",
                   R"({"model": {"type": "WordLevel", "unk_token": "<unk>",
                       "vocab": {"<unk>": 0, "<s>": 1, "</s>": 2, "a": 3}}})");
  test::write_file(folder / "tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": "</s>"})");
  test::write_file(folder / "chat_template.jinja", chat_template);
  return load_tokenizer(folder.path());
}

std::vector<ChatMessage> messages_of(const ParsedJson& chat) {
  std::vector<ChatMessage> messages;
  for (const ParsedJson& m : chat)
    messages.push_back({m.at("role").get<std::string>(), m.at("content").get<std::string>()});
  return messages;
}

// How the style's prompts compare with what the template gave: "" for one that is refused.
struct Held {
  std::size_t equal = 0, refused = 0;
  std::string wrong;  // the first that is neither
};
Held hold(const ChatStyle& style, const ParsedJson& chats, const ParsedJson& prompts,
          const Tokenizer& tokenizer) {
  Held held;
  for (std::size_t i = 0; i < chats.size(); ++i) {
    std::string text;
    try {
      text = render_chat(style, messages_of(chats[i]), tokenizer);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      ++held.refused;
      continue;
    }
    const bool same = prompts[i].is_string() && text == prompts[i].get<std::string>();
    held.equal += same ? 1 : 0;
    if (!same && held.wrong.empty())
      held.wrong = chats[i].dump() + "\n  ours: " + text + "\n  Jinja: " + prompts[i].dump();
  }
  return held;
}

TEST(ChatTemplate, EveryStyleWritesWhatTransformersWrites) {
  const ParsedJson all = read_json(test::source_dir() / "data/fixtures/chat/EXPECTED.json");
  const test::TempDir folder;
  const auto tokenizer = small_tokenizer(folder, "");
  ASSERT_EQ(all.at("templates").size(), chat_styles().size());
  for (const ParsedJson& family : all.at("templates")) {
    const std::string name = family.at("name").get<std::string>();
    const ChatStyle* style = chat_style_named(name);
    ASSERT_NE(style, nullptr) << name;
    const Held held = hold(*style, all.at("chats"), family.at("prompts"), *tokenizer);
    EXPECT_EQ(held.wrong, "") << name;
    // What is refused, the template raises on; Qwen 3 is asked about tools' answers besides.
    std::size_t raised = 0;
    for (const ParsedJson& prompt : family.at("prompts")) raised += prompt.is_null() ? 1 : 0;
    EXPECT_EQ(held.refused, name == "Qwen 3" ? 3u : raised) << name;
  }
}

// Templates of the models' own repositories, where somebody has collected them: 155 at the time of writing.
TEST(ChatTemplate, RealTemplatesRenderTheSameOrAreRefused) {
  const char* collected = std::getenv("ASSAY_CHAT_TEMPLATES");
  if (collected == nullptr) GTEST_SKIP() << "SKIPPED: no ASSAY_CHAT_TEMPLATES";
  const ParsedJson all = read_json(collected);
  const test::TempDir folder;
  const auto tokenizer = small_tokenizer(folder, "");
  std::size_t known = 0;
  for (const ParsedJson& family : all.at("templates")) {
    const std::string name = family.at("name").get<std::string>();
    const std::string source = family.at("template").get<std::string>();
    if (const ChatStyle* style = chat_style_of(source)) {
      ++known;
      EXPECT_EQ(hold(*style, all.at("chats"), family.at("prompts"), *tokenizer).wrong, "")
          << name << " taken for " << style->name;
      continue;
    }
    for (const ChatStyle& style : chat_styles()) {
      const Held held = hold(style, all.at("chats"), family.at("prompts"), *tokenizer);
      if (held.wrong.empty() && held.equal > all.at("chats").size() / 2)
        printf("%s could be known: {\"%s\", \"%s\"}\n", name.c_str(), template_fingerprint(source).c_str(),
               std::string(style.name).c_str());
    }
  }
  printf("%zu of %zu templates are known\n", known, all.at("templates").size());
}

TEST(ChatTemplate, RealQwen3) {
  ASSAY_CASE_OR_SKIP(folder, "tokenizers/qwen3");
  const auto tokenizer = load_tokenizer(folder);
  const std::vector<ChatMessage> messages = {
      {"system", "S"}, {"user", "U"}, {"assistant", "<think>\nhm\n</think>\n\nA"}, {"user", "V"}};
  const ChatStyle& style = recognize_chat_style(*tokenizer);
  EXPECT_EQ(style.name, "Qwen 3");
  EXPECT_EQ(
      render_chat(style, messages, *tokenizer),
      "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n"
      "<|im_start|>user\nV<|im_end|>\n<|im_start|>assistant\n");
}

// Recognized to the letter, or not at all: one character decides. JSON gives a newline where the template's
// source has one, and a backslash and an n where that has these: both are templates of their own.
TEST(ChatTemplate, ATemplateIsRecognizedToTheLetter) {
  const ParsedJson all = read_json(test::source_dir() / "data/fixtures/chat/EXPECTED.json");
  const std::string chatml = all.at("templates").at(0).at("template").get<std::string>();
  const test::TempDir folder;
  EXPECT_EQ(recognize_chat_style(*small_tokenizer(folder, chatml)).name, "ChatML");
  EXPECT_EQ(recognize_chat_style(*small_tokenizer(folder, chatml + "\n")).name,
            "ChatML");  // Jinja drops the last
  std::string windows;
  for (const char c : chatml) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(recognize_chat_style(*small_tokenizer(folder, windows)).name, "ChatML");
  for (std::size_t i = 0; i < chatml.size(); i += 7) {
    std::string other = chatml;
    other[i] = other[i] == 'x' ? 'y' : 'x';
    EXPECT_THROW(recognize_chat_style(*small_tokenizer(folder, other)), Error) << i;
  }
  // The same literals, another order: what looking for literals took for ChatML.
  for (const std::string& other : {std::string("{{ messages[0].content }}"), std::string("<|im_start|>"),
                                   "{% if false %}" + chatml + "{% endif %}", chatml + " "})
    EXPECT_THROW(recognize_chat_style(*small_tokenizer(folder, other)), Error) << other;
  // No template: the vocabulary does not tell what the model was trained with.
  EXPECT_THROW(recognize_chat_style(*small_tokenizer(folder, "")), Error);
}

TEST(ChatTemplate, RolesAreChecked) {
  const test::TempDir folder;
  const auto tokenizer = small_tokenizer(folder, "");
  const ChatStyle& style = *chat_style_named("ChatML");
  EXPECT_THROW(render_chat(style, {}, *tokenizer), Error);
  EXPECT_THROW(render_chat(style, {{"tool", "x"}}, *tokenizer), Error);
  EXPECT_THROW(render_chat(style, {{"user", "x"}, {"system", "y"}}, *tokenizer), Error);
  EXPECT_THROW(render_chat(style, {{"user", "x"}, {"user", "y"}}, *tokenizer), Error);
  EXPECT_THROW(render_chat(style, {{"user", "x"}, {"assistant", "y"}}, *tokenizer), Error);
  EXPECT_THROW(render_chat(style, {{"system", " "}, {"user", "y"}}, *tokenizer), Error);
  EXPECT_THROW(render_chat(*chat_style_named("Gemma"), {{"system", "x"}, {"user", "y"}}, *tokenizer), Error);
}

}  // namespace
}  // namespace assay
