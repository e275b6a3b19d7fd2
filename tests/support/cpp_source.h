// What a C++ file declares at the level of namespaces, and how long its functions are: read from its text,
// without a compiler. It knows the C++ that this house writes, not all of C++.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::test {

struct Declaration {
  std::string scope;        // "assay::cuda"; unnamed namespaces add nothing
  bool in_unnamed = false;  // ... and this says that there is one
  std::string name;
  std::optional<std::string> parameters;  // of a function: their types; else nullopt
  std::string text;                       // without attributes, comments and bodies
  std::size_t line = 0;
};

struct FunctionBody {
  std::string name;
  std::size_t line = 0, lines = 0;
  std::size_t statements = 0;  // semicolons, those in initializers aside
};

struct CppSource {
  std::string code;                       // without comments and the insides of literals
  std::vector<Declaration> declarations;  // types, functions, variables, aliases; no forward declarations
  std::vector<FunctionBody> functions;    // those of classes, too
};

CppSource read_cpp(std::string_view text);

}  // namespace assay::test
