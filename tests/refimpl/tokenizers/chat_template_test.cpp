// Prompts against transformers' apply_chat_template (data/make_jinja_fixtures.py).
#include "refimpl/tokenizers/chat_template.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/json.h"
#include "refimpl/jinja/json_value.h"
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
  test::write_file(folder / "tokenizer_config.json",
                   R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}})");
  test::write_file(folder / "chat_template.jinja", chat_template);
  return load_tokenizer(folder.path());
}

ChatRequest request_of(const Json& chat) {
  ChatRequest request;
  request.now = jinja::moment_from_text("2026-02-03T04:05:06");
  for (const auto& [key, value] : chat.items()) {
    if (key == "messages") {
      request.messages = chat_messages(value.dump(), "chat");
    } else if (key == "tools" || key == "documents") {
      (key == "tools" ? request.tools : request.documents) = jinja::value_from_json(value.dump());
    } else if (key == "add_generation_prompt") {
      request.add_generation_prompt = value.get<bool>();
    } else if (key == "continue_final_message") {
      request.continue_final_message = value.get<bool>();
    } else {
      request.variables.emplace_back(jinja::text(key), jinja::value_from_json(value.dump()));
    }
  }
  return request;
}

// Every prompt as transformers makes it; where the template raises, an error. Returns how many prompts there were.
std::size_t hold(const Json& all) {
  std::size_t prompts = 0;
  const test::TempDir folder;
  for (const Json& each : all.at("templates")) {
    const std::string name = each.at("name").get<std::string>();
    const auto tokenizer = small_tokenizer(folder, each.at("template").get<std::string>());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < all.at("chats").size() && wrong < 3; ++i) {
      const Json& expected = each.at("prompts")[i];
      std::string got;
      bool refused = false;
      try {
        got = ChatTemplate::of(*tokenizer, "", false).render(request_of(all.at("chats")[i]));
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::input) << error.line();
        refused = true;
        got = error.line();
      }
      const bool right = expected.is_string() ? !refused && got == expected.get<std::string>() : refused;
      wrong += right ? 0 : 1;
      EXPECT_TRUE(right) << name << ", chat " << i << ": " << all.at("chats")[i].dump() << "\n  ours: " << got
                         << "\n  jinja2: " << expected.dump();
      ++prompts;
    }
  }
  return prompts;
}

TEST(ChatTemplate, ConversationsAsTransformersWritesThem) {
  const Json all =
      Json::parse(read_small_file(test::source_dir() / "data/fixtures/jinja/chats.json", 16 << 20));
  ASSERT_GE(all.at("chats").size(), 60u);
  EXPECT_EQ(hold(all), all.at("chats").size() * all.at("templates").size());
}

// Templates of the models' own repositories, where somebody has collected them: 180 at the time of writing.
TEST(ChatTemplate, RealTemplates) {
  const char* collected = std::getenv("ASSAY_CHAT_TEMPLATES");
  if (collected == nullptr) GTEST_SKIP() << "SKIPPED: no ASSAY_CHAT_TEMPLATES";
  const Json all = Json::parse(read_small_file(collected, 1 << 30));
  printf("%zu prompts of %zu templates\n", hold(all), all.at("templates").size());
}

TEST(ChatTemplate, RealQwen3) {
  ASSAY_CASE_OR_SKIP(folder, "tokenizers/qwen3");
  const auto tokenizer = load_tokenizer(folder);
  const ChatTemplate chat = ChatTemplate::of(*tokenizer, "", false);
  EXPECT_EQ(chat.name(), "tokenizer_config.json: chat_template");
  ChatRequest request;
  request.messages = chat_messages(R"([{"role": "system", "content": "S"}, {"role": "user", "content": "U"},
      {"role": "assistant", "content": "<think>\nhm\n</think>\n\nA"}, {"role": "user", "content": "V"}])",
                                   "m");
  EXPECT_EQ(
      chat.render(request),
      "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n"
      "<|im_start|>user\nV<|im_end|>\n<|im_start|>assistant\n");
  request.variables.emplace_back(jinja::text("enable_thinking"), jinja::Value::of_bool(false));
  EXPECT_TRUE(chat.render(request).ends_with("assistant\n<think>\n\n</think>\n\n"));
}

TEST(ChatTemplate, IsChosenByNameFileOrTools) {
  const test::TempDir folder;
  small_tokenizer(folder, "");
  fs::remove(folder / "chat_template.jinja");
  test::write_file(folder / "tokenizer_config.json",
                   R"({"bos_token": "<s>", "image_token": "<img>", "chat_template": [
      {"name": "default", "template": "D{{ bos_token }}{{ image_token }}"}, {"name": "tool_use", "template": "T"}]})");
  test::write_file(folder / "mine.jinja", "M{{ messages[0].content }}");
  const auto tokenizer = load_tokenizer(folder.path());
  const auto prompt = [&](const std::string& choice, bool tools) {
    ChatRequest request;
    request.messages = {chat_message("user", "Hi")};
    return ChatTemplate::of(*tokenizer, choice, tools).render(request);
  };
  EXPECT_EQ(prompt("", false), "D<s><img>");
  EXPECT_EQ(prompt("", true), "T");
  EXPECT_EQ(prompt("default", true), "D<s><img>");
  EXPECT_EQ(prompt((folder / "mine.jinja").string(), false), "MHi");
  EXPECT_THROW(prompt("other", false), Error);
  fs::create_directories(folder / "additional_chat_templates");
  test::write_file(folder / "additional_chat_templates/rag.jinja", "R");
  test::write_file(folder / "chat_template.jinja", "J");
  const auto again = load_tokenizer(folder.path());
  ASSERT_EQ(again->chat_templates().size(), 2u);
  EXPECT_EQ(again->chat_template(), "J");
  EXPECT_EQ(again->chat_templates()[1].name, "rag");
  fs::remove(folder / "chat_template.jinja");
  fs::remove_all(folder / "additional_chat_templates");
  test::write_file(folder / "chat_template.json", R"({"chat_template": "P"})");
  EXPECT_EQ(load_tokenizer(folder.path())->chat_template(), "D{{ bos_token }}{{ image_token }}");
  test::write_file(folder / "tokenizer_config.json", "{}");
  EXPECT_EQ(load_tokenizer(folder.path())->chat_template(), "P");
  test::write_file(folder / "chat_template.json", "{}");
  EXPECT_THROW(ChatTemplate::of(*load_tokenizer(folder.path()), "", false), Error);
}

TEST(ChatTemplate, RequestsAreChecked) {
  const test::TempDir folder;
  const auto tokenizer = small_tokenizer(
      folder, "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}{{ tools is none }}");
  const ChatTemplate chat = ChatTemplate::of(*tokenizer, "", false);
  EXPECT_THROW(chat.render({}), Error);
  EXPECT_THROW(chat_messages("5", "m"), Error);
  EXPECT_THROW(chat_messages("[5]", "m"), Error);
  EXPECT_THROW(chat_messages("[", "m"), Error);
  EXPECT_THROW(chat_message("user", "\xff"), Error);
  ChatRequest request;
  request.messages = chat_messages(R"({"messages": [{"role": "user", "content": "a", "name": null}]})", "m");
  EXPECT_EQ(chat.render(request), "user:a;True");
  request.continue_final_message = true;
  EXPECT_EQ(chat.render(request), "user:a");
}

}  // namespace
}  // namespace assay
