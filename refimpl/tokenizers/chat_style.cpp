#include "refimpl/tokenizers/chat_style.h"

#include <algorithm>
#include <iterator>

#include "core/formats/stream_digest.h"

namespace assay {
namespace {

constexpr ChatStyle kStyles[] = {
    {.name = "ChatML",
     .system = {"<|im_start|>system\n", "<|im_end|>\n"},
     .user = {"<|im_start|>user\n", "<|im_end|>\n"},
     .assistant = {"<|im_start|>assistant\n", "<|im_end|>\n"},
     .generation = "<|im_start|>assistant\n"},
    {.name = "ChatML with BOS",
     .begin = "{bos}",
     .system = {"<|im_start|>system\n", "<|im_end|>\n"},
     .user = {"<|im_start|>user\n", "<|im_end|>\n"},
     .assistant = {"<|im_start|>assistant\n", "<|im_end|>\n"},
     .generation = "<|im_start|>assistant\n"},
    {.name = "Qwen 1.5",
     .system = {"<|im_start|>system\n", "<|im_end|>\n"},
     .preset_system = "<|im_start|>system\nYou are a helpful assistant<|im_end|>\n",
     .user = {"<|im_start|>user\n", "<|im_end|>\n"},
     .assistant = {"<|im_start|>assistant\n", "<|im_end|>\n"},
     .generation = "<|im_start|>assistant\n"},
    {.name = "Qwen 2",
     .system = {"<|im_start|>system\n", "<|im_end|>\n"},
     .preset_system = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n",
     .user = {"<|im_start|>user\n", "<|im_end|>\n"},
     .assistant = {"<|im_start|>assistant\n", "<|im_end|>\n"},
     .generation = "<|im_start|>assistant\n"},
    {.name = "Qwen 2.5",
     .system = {"<|im_start|>system\n", "<|im_end|>\n"},
     .preset_system = "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful "
                      "assistant.<|im_end|>\n",
     .user = {"<|im_start|>user\n", "<|im_end|>\n"},
     .assistant = {"<|im_start|>assistant\n", "<|im_end|>\n"},
     .generation = "<|im_start|>assistant\n"},
    {.name = "Qwen 3",
     .system = {"<|im_start|>system\n", "<|im_end|>\n"},
     .user = {"<|im_start|>user\n", "<|im_end|>\n"},
     .assistant = {"<|im_start|>assistant\n", "<|im_end|>\n"},
     .generation = "<|im_start|>assistant\n",
     .thoughts = Thoughts::cut_with_newlines},
    {.name = "Llama 2",
     .system = {"<<SYS>>\n", "\n<</SYS>>\n\n"},
     .user = {"{bos}[INST] ", " [/INST]"},
     .assistant = {" ", " {eos}"},
     .place = SystemPlace::in_first_user,
     .trims_user = Trim::with_system,
     .trims_assistant = true},
    {.name = "Llama 3",
     .begin = "{bos}",
     .system = {"<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>"},
     .user = {"<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"},
     .assistant = {"<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"},
     .generation = "<|start_header_id|>assistant<|end_header_id|>\n\n",
     .trims_system = true,
     .trims_user = Trim::alone,
     .trims_assistant = true},
    {.name = "Llama 3.1",
     .begin = "{bos}",
     .system = {"<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\nToday "
                "Date: 26 Jul 2024\n\n",
                "<|eot_id|>"},
     .preset_system = "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December "
                      "2023\nToday Date: 26 Jul 2024\n\n<|eot_id|>",
     .user = {"<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"},
     .assistant = {"<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"},
     .generation = "<|start_header_id|>assistant<|end_header_id|>\n\n",
     .trims_system = true,
     .trims_user = Trim::alone,
     .trims_assistant = true},
    {.name = "Mistral v1",
     .begin = "{bos}",
     .system = {"", ""},
     .user = {"[INST] ", " [/INST]"},
     .assistant = {"", "{eos}"},
     .place = SystemPlace::refused},
    {.name = "Mistral v1, a space after EOS",
     .begin = "{bos}",
     .system = {"", ""},
     .user = {"[INST] ", " [/INST]"},
     .assistant = {"", "{eos} "},
     .place = SystemPlace::refused},
    {.name = "Mistral Tekken",
     .begin = "{bos}",
     .system = {"", "\n\n"},
     .user = {"[INST]", "[/INST]"},
     .assistant = {"", "{eos}"},
     .place = SystemPlace::in_last_user},
    {.name = "Gemma",
     .begin = "{bos}",
     .system = {"", ""},
     .user = {"<start_of_turn>user\n", "<end_of_turn>\n"},
     .assistant = {"<start_of_turn>model\n", "<end_of_turn>\n"},
     .generation = "<start_of_turn>model\n",
     .place = SystemPlace::refused,
     .trims_user = Trim::alone,
     .trims_assistant = true},
    {.name = "Gemma 3",
     .begin = "{bos}",
     .system = {"", "\n\n"},
     .user = {"<start_of_turn>user\n", "<end_of_turn>\n"},
     .assistant = {"<start_of_turn>model\n", "<end_of_turn>\n"},
     .generation = "<start_of_turn>model\n",
     .place = SystemPlace::in_first_user,
     .trims_user = Trim::alone,
     .trims_assistant = true},
    {.name = "Phi-3",
     .system = {"<|system|>\n", "<|end|>\n"},
     .user = {"<|user|>\n", "<|end|>\n"},
     .assistant = {"<|assistant|>\n", "<|end|>\n"},
     .generation = "<|assistant|>\n"},
    {.name = "Phi-3 with BOS",
     .begin = "{bos}",
     .system = {"<|system|>\n", "<|end|>\n"},
     .user = {"<|user|>\n", "<|end|>\n"},
     .assistant = {"<|assistant|>\n", "<|end|>\n"},
     .generation = "<|assistant|>\n"},
    {.name = "Phi-3 without system messages",
     .system = {"", ""},
     .user = {"<|user|>\n", "<|end|>\n<|assistant|>\n"},
     .assistant = {"", "<|end|>\n"},
     .place = SystemPlace::dropped},
    {.name = "Phi-3 with BOS, without system messages",
     .begin = "{bos}",
     .system = {"", ""},
     .user = {"<|user|>\n", "<|end|>\n<|assistant|>\n"},
     .assistant = {"", "<|end|>\n"},
     .place = SystemPlace::dropped},
    {.name = "Zephyr",
     .system = {"<|system|>\n", "{eos}\n"},
     .user = {"<|user|>\n", "{eos}\n"},
     .assistant = {"<|assistant|>\n", "{eos}\n"},
     .generation = "<|assistant|>\n"},
    {.name = "Zephyr without system messages",
     .system = {"", ""},
     .user = {"<|user|>\n", "\n"},
     .assistant = {"<|assistant|>\n", "{eos}\n"},
     .generation = "<|assistant|>\n",
     .place = SystemPlace::dropped},
    {.name = "DeepSeek V2",
     .begin = "{bos}",
     .system = {"", "\n\n"},
     .user = {"User: ", "\n\n"},
     .assistant = {"Assistant: ", "{eos}"},
     .generation = "Assistant:"},
    {.name = "DeepSeek R1",
     .begin = "{bos}",
     .system = {"", ""},
     .user = {"<｜User｜>", ""},
     .assistant = {"<｜Assistant｜>", "<｜end▁of▁sentence｜>"},
     .generation = "<｜Assistant｜>",
     .thoughts = Thoughts::cut},
    {.name = "Granite 3",
     .system = {"<|start_of_role|>system<|end_of_role|>", "<|end_of_text|>\n"},
     .user = {"<|start_of_role|>user<|end_of_role|>", "<|end_of_text|>\n"},
     .assistant = {"<|start_of_role|>assistant<|end_of_role|>", "<|end_of_text|>\n"},
     .generation = "<|start_of_role|>assistant<|end_of_role|>"},
    {.name = "Command-R",
     .begin = "{bos}",
     .system = {"<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>", "<|END_OF_TURN_TOKEN|>"},
     .user = {"<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", "<|END_OF_TURN_TOKEN|>"},
     .assistant = {"<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>"},
     .generation = "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
     .trims_user = Trim::alone,
     .trims_assistant = true},
    {.name = "OpenChat",
     .begin = "{bos}",
     .system = {"GPT4 Correct System: ", "<|end_of_turn|>"},
     .user = {"GPT4 Correct User: ", "<|end_of_turn|>"},
     .assistant = {"GPT4 Correct Assistant: ", "<|end_of_turn|>"},
     .generation = "GPT4 Correct Assistant:"},
};

struct Known {
  std::string_view fingerprint, style;
};
// Templates that data/make_chat_fixtures.py --templates has found to render as the style does: those of the
// models' own repositories, as public test suites and template collections hold them (ollama's
// template/index.json, the tests of huggingface.js, mistral.rs), and those of ../shared/cases.
constexpr Known kTemplates[] = {
    {"153280e3ff55d19da1398bdb3914ee2a", "ChatML"},
    {"2902a6768a1bc1340e851c19c4d0ef57", "ChatML"},
    {"58c1a1f04baa7adaeaba1f90267c3d57", "ChatML"},
    {"dbd75fe18b14711fa5968600a6f5c974", "ChatML"},
    {"e6f6e5c192657d1631c2cdf89cd84025", "ChatML"},
    {"3ce2fe9753f9a77a601f55dfcab7cd46", "ChatML with BOS"},
    {"a805e50fed68938a076b07e2e6026396", "ChatML with BOS"},
    {"f42d04ffb2e487fa9c501ab886afe8fc", "ChatML with BOS"},
    {"7a2fad4301dcce93b13747dfd6ee5fa6", "Qwen 1.5"},
    {"af9c0233881b083b52ff773580215222", "Qwen 1.5"},
    {"0254937901f084d545e18931d7fb449f", "Qwen 2"},
    {"a0bc6f6fc7a29a80017a433e8f03a1cc", "Qwen 2"},
    {"793202280c0910ab26bc6eb57c8212c2", "Qwen 2"},
    {"f02c534193010c4bd1e40fe3dd501147", "Qwen 2"},
    {"b1d2bb00d59cae00a80c2b526765a9cc", "Qwen 2.5"},
    {"55b2f4a26ac9ee719330a61a0c39d9e5", "Qwen 2.5"},
    {"5595e8741bb5500f9d395e05a0aefe6c", "Qwen 3"},
    {"87a2728cb8dc9fe424d624542f6060ec", "Qwen 3"},
    {"e8d5b5a546d3f19df16a5320c614fab0", "Llama 2"},
    {"be7f8f15473ed3f98fd513d422daef97", "Llama 2"},
    {"ea2472f29dbd93c3eb696795f6403228", "Llama 2"},
    {"ba03a121d097859c7b5b9cd03af99aaf", "Llama 3"},
    {"93c0e9aa3629bbd77e68dbc0f5621f6e", "Llama 3.1"},
    {"26a59556925c987317ce5291811ba3b7", "Mistral v1"},
    {"7e995b379ec01747807246483647cd99", "Mistral v1, a space after EOS"},
    {"b00c099a0f2f0a035ce0d5c77d77d523", "Mistral Tekken"},
    {"c7a94f505398612940c13ee95070d0d1", "Mistral Tekken"},
    {"ecd6ae513fe103f0eb62e8ab5bfa8d0f", "Gemma"},
    {"9cae32b35b45454e9bd3673b4011701b", "Gemma 3"},
    {"8d9e3a3c114fb2053ec500184677af4f", "Gemma 3"},
    {"78d976a442bcde2f0be15aafbb8e3050", "Phi-3"},
    {"b0e53f5e7bae6fdb93013abeceef343e", "Phi-3 with BOS"},
    {"605841622bcb6572225608f09ec2afcd", "Phi-3 without system messages"},
    {"268b6082ceb7176dc6ed80557a2f7837", "Phi-3 with BOS, without system messages"},
    {"66291cf0045c2425a3a667cf3cbb7af2", "Zephyr"},
    {"bf61473d7119388a9093c4e55e4d8365", "Zephyr without system messages"},
    {"8aeba567270fa9a8d5372caf4b04affe", "DeepSeek V2"},
    {"3a3036eeb96ca0e48565fc1f19b4d7d3", "DeepSeek R1"},
    {"d7f1fa46794895c5fbb06265fb87e938", "Granite 3"},
    {"9db2cf47ce03bfd0aab6ec5994250371", "Command-R"},
    {"901b10d47195fadb5692137ecd4b2733", "OpenChat"},
};

}  // namespace

std::span<const ChatStyle> chat_styles() {
  return kStyles;
}

std::string template_fingerprint(std::string_view source) {
  std::string text;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const bool pair = source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n';
    if (!pair) text += source[i] == '\r' ? '\n' : source[i];
  }
  if (text.ends_with('\n')) text.pop_back();
  return digest_of(DigestKind::sha256, std::as_bytes(std::span(text))).hex().substr(0, 32);
}

const ChatStyle* chat_style_of(std::string_view source) {
  const std::string fingerprint = template_fingerprint(source);
  const auto* known = std::ranges::find(kTemplates, fingerprint, &Known::fingerprint);
  return known == std::end(kTemplates) ? nullptr : chat_style_named(known->style);
}

const ChatStyle* chat_style_named(std::string_view name) {
  const auto* style = std::ranges::find(kStyles, name, &ChatStyle::name);
  return style == std::end(kStyles) ? nullptr : style;
}

}  // namespace assay
