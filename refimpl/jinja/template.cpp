#include "refimpl/jinja/template.h"

#include <fmt/format.h>

#include "core/system/error.h"
#include "core/system/text.h"
#include "refimpl/jinja/evaluator.h"
#include "refimpl/jinja/json_value.h"
#include "refimpl/jinja/parser.h"
#include "refimpl/jinja/scopes.h"
#include "refimpl/jinja/things.h"
#include "refimpl/jinja/unicode.h"

namespace assay::jinja {
namespace {

constexpr std::size_t kMostTemplateBytes = 4u << 20;

// What `variables` makes is made within the session, and counted.
template <class Variables>
Context context_of(const Variables& variables) {
  Context context;
  for (auto& [name, function] : global_functions()) context.emplace(name.str(), function);
  for (const auto& [name, value] : variables()) context.insert_or_assign(name.str(), value);
  return context;
}

}  // namespace

Template::Template(std::unique_ptr<Program> program, std::string name)
    : program_(std::move(program)), name_(std::move(name)) {}
Template::~Template() = default;
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;

Template Template::parse(std::string_view source, std::string name, const Whitespace& whitespace) {
  try {
    if (source.size() > kMostTemplateBytes)
      throw Error::input(
          fmt::format("a template of {} bytes; at most {} are read", source.size(), kMostTemplateBytes));
    auto program = std::make_unique<Program>(jinja::parse(source, whitespace));
    resolve_scopes(*program);
    return Template(std::move(program), std::move(name));
  } catch (Error& error) {
    throw error.in(name);
  }
}

template <class Variables>
std::string Template::render_with(Variables variables, const RenderOptions& options) const {
  Session session(options.limits);
  session.now = options.now ? *options.now : current_moment();
  std::optional<Evaluator> evaluator;
  try {
    evaluator.emplace(session, *program_, context_of(variables));
    std::string out = evaluator->run();
    if (has_half_surrogate(out)) fail("the text holds half a surrogate pair, which UTF-8 cannot");
    return out;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::input) throw;
    const int line = evaluator ? evaluator->line() : 0;
    const std::string cause = line == 0 ? error.message() : fmt::format("line {}: {}", line, error.message());
    throw Error::input(cause).in(name_);
  }
}

std::string Template::render(std::string_view variables, const RenderOptions& options) const {
  return render_with(
      [&] {
        const Value given = value_from_json(variables);
        if (!given.is_dict()) fail("a template's variables have to be a JSON object");
        return given.as_dict().entries;
      },
      options);
}

std::string Template::render(Dict::Entries variables, const RenderOptions& options) const {
  return render_with([&]() -> const Dict::Entries& { return variables; }, options);
}

}  // namespace assay::jinja
