// The names of one frame: which are its own, and what they hold when it is entered.
#pragma once

#include <map>
#include <set>
#include <string>

#include "refimpl/jinja/ast.h"

namespace assay::jinja {

class Symbols {
 public:
  explicit Symbols(Function& function);         // of a function by itself: the template, a block
  explicit Symbols(Symbols& outer);             // of a frame in the function of `outer`
  Symbols(Symbols& outer, Function& function);  // of a function within: a macro, a recursive loop
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;

  // Reads what follows from names in the frame's body, from top to bottom.
  void visit(Statements& body);
  void visit(Statement& statement);
  void visit(Expression& expression);
  void visit_parameter(Expression& target);  // its names are given from outside
  int declare(const std::string& name);      // likewise one name

  Variable find(const std::string& name, int line) const;
  Loads loads() const;
  Exports stored() const;  // the names assigned to here and around

 private:
  // What an `if` may add in one of its branches.
  struct Names {
    std::map<std::string, int> slots;
    std::map<int, Load> loads;
    std::set<std::string> stores;
  };
  void store(const std::string& name);
  void load(const std::string& name);
  void visit_if(If& node);
  void merge(const std::vector<Names>& branches);
  int slot_of(const std::string& name);
  void define(const std::string& name, Load load);
  const Symbols* owner(const std::string& name) const;  // nullptr: no frame has it
  Variable variable_of(const Symbols& owner, const std::string& name) const;

  Symbols* outer_ = nullptr;
  Function& function_;
  int function_depth_ = 0;
  Names names_;
  std::map<std::string, int> all_slots_;  // of names in any branch: the same name has the same slot
};

// Whether `name` is looked at in `body`, before anything there assigns it.
bool looks_at(std::string_view name, Statements& body);

}  // namespace assay::jinja
