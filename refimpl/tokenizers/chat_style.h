// What a chat template writes around messages, for the templates that are known to the letter.
//
// Models bring a Jinja template, a program; here is none that runs it. So a template is recognized by a
// digest of its text and by nothing less: each one listed was rendered by Jinja in some twenty conversations,
// and the style beside it wrote the same. A template that differs in a character may render anything, and is
// refused.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace assay {

enum class SystemPlace {
  turn,           // a message of its own
  in_first_user,  // before the first user's text
  in_last_user,   // before the last user's
  refused,        // the template raises
  dropped,        // the template does not write it
};

enum class Trim { nothing, alone, with_system };  // of a user's text; after the system's was put before it

// What becomes of a reasoning model's "…</think>" in an earlier turn.
enum class Thoughts { kept, cut, cut_with_newlines };

struct Around {
  std::string_view open, close;
};

// In all texts "{bos}" and "{eos}" stand for the tokenizer's pieces.
struct ChatStyle {
  std::string_view name;
  std::string_view begin = {};
  Around system = {};
  std::string_view preset_system = {};  // where no message is the system's
  Around user = {}, assistant = {};
  std::string_view generation = {};  // the beginning of the answer that is asked for
  SystemPlace place = SystemPlace::turn;
  bool trims_system = false;
  Trim trims_user = Trim::nothing;
  bool trims_assistant = false;
  Thoughts thoughts = Thoughts::kept;
};

std::span<const ChatStyle> chat_styles();
const ChatStyle* chat_style_named(std::string_view name);

// 128 bits of the SHA-256 of a template's source, its ends of lines as Jinja reads them.
std::string template_fingerprint(std::string_view source);
// nullptr: the template is none of those that are known.
const ChatStyle* chat_style_of(std::string_view source);

}  // namespace assay
