// A Jinja template, as transformers renders chat templates: jinja2's ImmutableSandboxedEnvironment with trim_blocks
// and lstrip_blocks, break and continue, {% generation %}, and its own tojson, raise_exception and strftime_now.
//
//   const Template chat = Template::parse(source, "chat_template.jinja");
//   std::string prompt = chat.render(R"({"messages": [{"role": "user", "content": "Hi"}]})");
//
// What comes out is what jinja2 gives, to the byte, or an Error. Time and memory are bounded (session.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "refimpl/jinja/lexer.h"
#include "refimpl/jinja/session.h"
#include "refimpl/jinja/value.h"

namespace assay::jinja {

struct Program;

struct RenderOptions {
  std::optional<Moment> now;  // the clock's where there is none
  Limits limits;
};

class Template {
 public:
  // Throws Error::input with `name` as the file, a line, and what jinja2 would not take either.
  static Template parse(std::string_view source, std::string name, const Whitespace& whitespace = {});
  ~Template();
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;

  // `variables`: a JSON object, whose members the template can name; the order of keys is kept. Throws Error::input
  // with the template's name and a line.
  std::string render(std::string_view variables, const RenderOptions& options = {}) const;
  // Likewise of values; of the same name twice the last holds.
  std::string render(Dict::Entries variables, const RenderOptions& options = {}) const;

  const std::string& name() const { return name_; }

 private:
  Template(std::unique_ptr<Program> program, std::string name);
  template <class Variables>
  std::string render_with(Variables variables, const RenderOptions& options) const;
  std::unique_ptr<Program> program_;
  std::string name_;
};

}  // namespace assay::jinja
