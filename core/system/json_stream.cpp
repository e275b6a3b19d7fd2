#include "core/system/json_stream.h"

#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/json.h"
#include "core/system/message.h"

namespace assay {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18;

// As it stands in an array that is a member of the document.
void append_indented(std::string& text, const std::string& element) {
  static constexpr std::string_view kIndent = "\n    ";
  std::size_t begin = 0;
  text += kIndent;
  for (auto end = element.find('\n'); end != element.npos; end = element.find('\n', begin)) {
    text.append(element, begin, end - begin);
    text += kIndent;
    begin = end + 1;
  }
  text.append(element, begin);
}

}  // namespace

void stream_json(const Json& document, std::string_view key, std::size_t count,
                 const std::function<Json(std::size_t)>& element, const WriteText& write) {
  const std::string whole = dump_json(document) + "\n";
  // A newline in a string is escaped, and members of members stand further to the right.
  const std::string member = "\n  \"" + std::string(key) + "\": []";
  const auto at = whole.find(member);
  if (at == whole.npos) throw Error::internal("a document without the list that is to be written");
  const std::size_t inside = at + member.size() - 1;
  std::string text = whole.substr(0, inside);
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) text += ',';
    append_indented(text, dump_json(element(i)));
    if (text.size() < kPiece) continue;
    write(text);
    text.clear();
  }
  if (count > 0) text += "\n  ";
  write(text);
  write(std::string_view(whole).substr(inside));
}

void stream_json_to(const std::string& target, const Json& document, std::string_view key, std::size_t count,
                    const std::function<Json(std::size_t)>& element) {
  if (target == "-") {
    stream_json(document, key, count, element, [](std::string_view text) { write_output(text); });
    return;
  }
  AtomicFile file(target);
  stream_json(document, key, count, element, [&](std::string_view text) { file.write(text); });
  file.commit();
}

}  // namespace assay
