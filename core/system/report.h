// What a command says: lines for people, a JSON document for scripts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/system/finding.h"

namespace assay {

using Json = nlohmann::ordered_json;  // whoever makes or reads one includes core/system/json.h

// Colours obey NO_COLOR, TERM=dumb and whether `stream` is a terminal.
enum class Style { plain, bold, dim, red, green, yellow, cyan };
bool colours_on(std::FILE* stream);
std::string styled(std::string_view text, Style style, bool on);

// Results on stdout. With `--json -` stdout belongs to the JSON document, and text is dropped.
class Output {
 public:
  explicit Output(std::string json_target) : json_target_(std::move(json_target)) {}
  bool text_wanted() const { return json_target_ != "-"; }
  bool json_wanted() const { return !json_target_.empty(); }
  bool colours() const { return colours_on(stdout); }
  void line(std::string_view text) const;  // to stdout, with a newline
  void paint(std::string_view text, Style style) const { line(styled(text, style, colours())); }
  void json(const Json& document) const;  // to stdout or, atomically, to the file named

 private:
  std::string json_target_;
};

// Invalid UTF-8 in names is replaced, so a hostile name can never break a document.
std::string dump_json(const Json& document, int indent = 2);

Json to_json(const Finding& finding);
Json to_json(const Findings& findings);
// "warning: model.safetensors: tensor x: byte 8: message; remedy"
std::string to_line(const Finding& finding);

}  // namespace assay
