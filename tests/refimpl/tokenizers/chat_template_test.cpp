// Prompts against transformers' apply_chat_template (data/make_chat_fixtures.py; the real templates by hand).
#include "refimpl/tokenizers/chat_template.h"

#include <gtest/gtest.h>

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

TEST(ChatTemplate, PromptsAreThoseOfTransformers) {
  const ParsedJson families = read_json(test::source_dir() / "data/fixtures/chat/EXPECTED.json");
  ASSERT_GE(families.size(), 10u);
  for (const ParsedJson& family : families) {
    const test::TempDir folder;
    const auto tokenizer = small_tokenizer(folder, family.at("template").get<std::string>());
    const ChatFormat format = recognize_chat_format(*tokenizer);
    for (const ParsedJson& prompt : family.at("prompts")) {
      std::vector<ChatMessage> messages;
      for (const ParsedJson& m : prompt.at("messages"))
        messages.push_back({m.at("role").get<std::string>(), m.at("content").get<std::string>()});
      EXPECT_EQ(render_chat(format, messages, *tokenizer), prompt.at("text").get<std::string>())
          << family.at("name") << " taken for " << name(format);
    }
  }
}

TEST(ChatTemplate, RealQwen3) {
  ASSAY_CASE_OR_SKIP(folder, "tokenizers/qwen3");
  const auto tokenizer = load_tokenizer(folder);
  const std::vector<ChatMessage> messages = {
      {"system", "S"}, {"user", "U"}, {"assistant", "<think>\nhm\n</think>\n\nA"}, {"user", "V"}};
  EXPECT_EQ(
      render_chat(recognize_chat_format(*tokenizer), messages, *tokenizer),
      "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n"
      "<|im_start|>user\nV<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTemplate, AnotherTemplateIsRefused) {
  const test::TempDir folder;
  const auto tokenizer = small_tokenizer(folder, "{{ messages[0].content }}");
  EXPECT_THROW(recognize_chat_format(*tokenizer), Error);
}

TEST(ChatTemplate, RolesAreChecked) {
  const test::TempDir folder;
  const auto tokenizer = small_tokenizer(folder, "<|im_start|>");
  EXPECT_THROW(render_chat(ChatFormat::chatml, {}, *tokenizer), Error);
  EXPECT_THROW(render_chat(ChatFormat::chatml, {{"tool", "x"}}, *tokenizer), Error);
  EXPECT_THROW(render_chat(ChatFormat::chatml, {{"user", "x"}, {"system", "y"}}, *tokenizer), Error);
}

}  // namespace
}  // namespace assay
