// A chat template from a stranger, rendered with a small conversation. Byte 0 says whether white space is trimmed;
// a template that renders does so twice alike.
// link: assay_jinja
#include "refimpl/jinja/template.h"

#include "tests/fuzz/fuzz.h"

using namespace assay;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  static constexpr std::string_view kVariables =
      R"({"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "é<b>"},
          {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"x": [1, 2.5, null]}}}]}],
          "tools": [{"type": "function", "function": {"name": "f", "parameters": {"x": {"type": "integer"}}}}],
          "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>", "n": 7})";
  jinja::RenderOptions options;
  options.now = jinja::moment_from_text("2026-02-03T04:05:06");
  options.limits.work = 200'000;
  options.limits.bytes = 16u << 20;
  options.limits.output = 1u << 20;
  const jinja::Whitespace whitespace = {(data[0] & 1) == 0, (data[0] & 2) == 0, (data[0] & 4) != 0};
  const auto chat = fuzz::accepted(
      [&] { return jinja::Template::parse(fuzz::as_text(data, size).substr(1), "fuzz.jinja", whitespace); });
  if (!chat) return 0;
  const auto once = fuzz::accepted([&] { return chat->render(kVariables, options); });
  if (!once) return 0;
  fuzz::require(chat->render(kVariables, options) == *once, "a template renders alike twice");
  return 0;
}
