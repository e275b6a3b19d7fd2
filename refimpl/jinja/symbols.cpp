#include "refimpl/jinja/symbols.h"

#include <fmt/format.h>

#include "refimpl/jinja/children.h"
#include "refimpl/jinja/lexer.h"

namespace assay::jinja {

Symbols::Symbols(Function& function) : function_(function) {}
Symbols::Symbols(Symbols& outer)
    : outer_(&outer), function_(outer.function_), function_depth_(outer.function_depth_) {}
Symbols::Symbols(Symbols& outer, Function& function)
    : outer_(&outer), function_(function), function_depth_(outer.function_depth_ + 1) {}

int Symbols::slot_of(const std::string& name) {
  const auto [it, is_new] = all_slots_.emplace(name, function_.slots);
  if (is_new) ++function_.slots;
  return it->second;
}

void Symbols::define(const std::string& name, Load load) {
  load.slot = slot_of(name);
  names_.slots[name] = load.slot;
  names_.loads[load.slot] = std::move(load);
}

const Symbols* Symbols::owner(const std::string& name) const {
  for (const Symbols* frame = this; frame != nullptr; frame = frame->outer_) {
    if (frame->names_.slots.count(name) != 0) return frame;
  }
  return nullptr;
}

Variable Symbols::variable_of(const Symbols& owner, const std::string& name) const {
  return {function_depth_ - owner.function_depth_, owner.names_.slots.at(name)};
}

int Symbols::declare(const std::string& name) {
  names_.stores.insert(name);
  define(name, {Load::From::parameter, 0, name, {}});
  return names_.slots.at(name);
}

// A name that is assigned to here is the frame's own, and begins as what it is outside.
void Symbols::store(const std::string& name) {
  names_.stores.insert(name);
  if (names_.slots.count(name) != 0) return;
  const Symbols* from = outer_ != nullptr ? outer_->owner(name) : nullptr;
  if (from != nullptr) {
    define(name, {Load::From::variable, 0, name, variable_of(*from, name)});
  } else {
    define(name, {Load::From::nothing, 0, name, {}});
  }
}

void Symbols::load(const std::string& name) {
  if (owner(name) == nullptr) define(name, {Load::From::context, 0, name, {}});
}

void Symbols::visit_parameter(Expression& target) {
  if (auto* name = std::get_if<Name>(&target.is)) declare(name->name);
  for_each_child(target, [&](Expression& child) { visit_parameter(child); });
}

void Symbols::visit(Expression& expression) {
  if (auto* name = std::get_if<Name>(&expression.is)) {
    if (name->use == NameUse::load) load(name->name);
    if (name->use == NameUse::store) store(name->name);
    if (name->use == NameUse::parameter) declare(name->name);
  } else if (auto* target = std::get_if<NamespaceTarget>(&expression.is)) {
    load(target->name);
  }
  for_each_child(expression, [&](Expression& child) { visit(child); });
}

void Symbols::visit(Statements& body) {
  for (auto& statement : body) visit(*statement);
}

// Frames within are looked into when it is their turn; what they take from here counts here.
void Symbols::visit(Statement& statement) {
  if (auto* node = std::get_if<If>(&statement.is)) {
    visit_if(*node);
  } else if (auto* loop = std::get_if<For>(&statement.is)) {
    visit(*loop->over);
  } else if (auto* macro = std::get_if<Macro>(&statement.is)) {
    store(macro->name);
  } else if (auto* call = std::get_if<CallBlock>(&statement.is)) {
    if (call->call) visit(*call->call);
  } else if (auto* filter = std::get_if<FilterBlock>(&statement.is)) {
    visit(*filter->filter);
  } else if (auto* with = std::get_if<With>(&statement.is)) {
    for (auto& value : with->values) visit(*value);
  } else if (auto* set = std::get_if<Set>(&statement.is)) {
    visit(*set->value);
    visit(*set->target);
  } else if (auto* block = std::get_if<SetBlock>(&statement.is)) {
    visit(*block->target);
  } else if (auto* output = std::get_if<Output>(&statement.is)) {
    for (auto& part : output->parts) visit(*part);
  } else if (auto* other = std::get_if<OtherTemplate>(&statement.is)) {
    visit(*other->name);
    for (const std::string& target : other->targets) store(target);
  }
}

// Each branch begins with the names as they are; afterwards all of theirs are known. A name that only branches
// assign holds, where none was taken, what it holds outside or in the context.
void Symbols::visit_if(If& node) {
  visit(*node.branches.front().test);
  const Names before = names_;
  std::vector<Names> branches;
  visit(node.branches.front().body);
  branches.push_back(std::exchange(names_, before));
  // All `elif` count as one branch.
  for (std::size_t i = 1; i < node.branches.size(); ++i) {
    visit(*node.branches[i].test);
    const Names inside = names_;
    visit(node.branches[i].body);
    const std::vector<Names> one = {std::exchange(names_, inside)};
    merge(one);
  }
  branches.push_back(std::exchange(names_, before));
  visit(node.otherwise);
  branches.push_back(std::exchange(names_, before));
  merge(branches);
}

void Symbols::merge(const std::vector<Names>& branches) {
  std::set<std::string> stored;
  for (const Names& branch : branches) stored.insert(branch.stores.begin(), branch.stores.end());
  for (const std::string& known : names_.stores) stored.erase(known);
  for (const Names& branch : branches) {
    for (const auto& [name, slot] : branch.slots) names_.slots[name] = slot;
    for (const auto& [slot, load] : branch.loads) names_.loads[slot] = load;
    names_.stores.insert(branch.stores.begin(), branch.stores.end());
  }
  for (const std::string& name : stored) {
    const Symbols* from = outer_ != nullptr ? outer_->owner(name) : nullptr;
    if (from != nullptr) {
      define(name, {Load::From::variable, 0, name, variable_of(*from, name)});
    } else {
      define(name, {Load::From::context, 0, name, {}});
    }
  }
}

Variable Symbols::find(const std::string& name, int line) const {
  const Symbols* from = owner(name);
  // As with Jinja itself: in a filter of {% set x | filter(y) %} the name y is not looked for.
  if (from == nullptr) fail_at(line, fmt::format("the name '{}' cannot be resolved here", name));
  return variable_of(*from, name);
}

Loads Symbols::loads() const {
  Loads all;
  for (const auto& [slot, load] : names_.loads) all.push_back(load);
  return all;
}

Exports Symbols::stored() const {
  Exports all;
  std::set<std::string> seen;
  for (const Symbols* frame = this; frame != nullptr; frame = frame->outer_) {
    for (const std::string& name : frame->names_.stores) {
      if (seen.insert(name).second) all.emplace_back(name, variable_of(*owner(name), name));
    }
  }
  return all;
}

namespace {

enum class Look { no, yes, assigned };

Look look_in(std::string_view wanted, Expression& expression);

Look look_in(std::string_view wanted, Statement& statement) {
  if (std::holds_alternative<Block>(statement.is)) return Look::no;
  Look found = Look::no;
  for_each_part(
      statement, [&](Expression& each) { found = found == Look::no ? look_in(wanted, each) : found; },
      [&](Statement& each) { found = found == Look::no ? look_in(wanted, each) : found; });
  return found;
}

Look look_in(std::string_view wanted, Expression& expression) {
  if (const auto* name = std::get_if<Name>(&expression.is); name != nullptr && name->name == wanted)
    return name->use == NameUse::load ? Look::yes : Look::assigned;
  Look found = Look::no;
  for_each_child(expression,
                 [&](Expression& each) { found = found == Look::no ? look_in(wanted, each) : found; });
  return found;
}

}  // namespace

bool looks_at(std::string_view name, Statements& body) {
  for (auto& statement : body) {
    const Look found = look_in(name, *statement);
    if (found != Look::no) return found == Look::yes;
  }
  return false;
}

}  // namespace assay::jinja
