// House rules about what files declare: a library's files share no name that would meet where several of them
// are compiled as one (ASSAY_UNITY), and functions fit two screens.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/cpp_source.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostLines = 80;
constexpr std::size_t kStatementsOfATable = 20;  // a longer function with no more is one
constexpr std::array<std::string_view, 7> kProductFolders = {"core",    "refimpl",    "kernels", "verify",
                                                             "convert", "paramcount", "cli"};

// What assay_library() of a CMakeLists.txt compiles together: its folder's files and its SUBFOLDERS', those
// APART and those that Highway includes again and again aside.
std::vector<fs::path> united_files(const fs::path& list) {
  static const std::regex call(R"(assay_library\(([^)]*)\))");
  const std::string text = test::read_file(list);
  std::smatch match;
  if (!std::regex_search(text, match, call)) return {};
  std::vector<fs::path> folders = {list.parent_path()};
  std::set<fs::path> apart;
  std::istringstream words(match[1].str());
  std::string section;
  for (std::string word; words >> word;) {
    if (std::all_of(word.begin(), word.end(), [](char c) { return std::isupper(c) || c == '_'; })) {
      section = word;
    } else if (section == "SUBFOLDERS") {
      folders.push_back(list.parent_path() / word);
    } else if (section == "APART") {
      apart.insert(list.parent_path() / word);
    }
  }
  std::vector<fs::path> files;
  for (const fs::path& folder : folders) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() != ".cpp" || apart.contains(entry.path())) continue;
      if (test::read_file(entry.path()).find("foreach_target.h") == std::string::npos)
        files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// `name` stands somewhere without being called: where it has overloads nobody can tell which is meant.
bool is_passed_on(const std::string& name, const std::string& code) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (auto at = code.find(name); at != std::string::npos; at = code.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if (end >= code.size() || is_word(code[end]) ||
        (at > 0 && (is_word(code[at - 1]) || code[at - 1] == '.' || code[at - 1] == ':')))
      continue;
    if (code[end] == ',' || code[end] == ')') return true;
  }
  return false;
}

// Functions may share a name where they take other types; aliases where they say the same.
std::string meaning(const test::Declaration& d) {
  if (d.parameters) return "(" + *d.parameters + ")";
  return d.text.starts_with("using ") || d.text.starts_with("namespace ") ? d.text : std::string();
}

bool would_meet(const std::vector<std::string>& meanings) {
  if (meanings.size() < 2) return false;
  std::set<std::string> distinct(meanings.begin(), meanings.end());
  const bool alike = distinct.size() < meanings.size() && !meanings.front().starts_with("using ") &&
                     !meanings.front().starts_with("namespace ");
  const bool other_kinds =
      distinct.size() > 1 &&
      std::any_of(meanings.begin(), meanings.end(), [](const std::string& m) { return m[0] != '('; });
  return alike || other_kinds;
}

// A file, what it declares, and the headers of the house that it comes to include.
struct ReadFile {
  test::CppSource source;
  std::vector<std::string> includes;
};

class Files {
 public:
  explicit Files(fs::path root) : root_(std::move(root)) {}

  const ReadFile& read(const std::string& name) {
    const auto [it, is_new] = files_.try_emplace(name);
    if (!is_new || !fs::exists(root_ / name)) return it->second;
    static const std::regex include("^\\s*#\\s*include\\s*\"([^\"]+)\"");
    const std::string text = test::read_file(root_ / name);
    it->second.source = test::read_cpp(text);
    std::istringstream lines(text);
    std::smatch match;
    for (std::string line; std::getline(lines, line);) {
      if (std::regex_search(line, match, include)) it->second.includes.push_back(match[1].str());
    }
    return it->second;
  }

  void add_headers(const std::string& name, std::set<std::string>& headers) {
    const std::vector<std::string> includes = read(name).includes;
    for (const std::string& header : includes) {
      if (headers.insert(header).second) add_headers(header, headers);
    }
  }

 private:
  fs::path root_;
  std::map<std::string, ReadFile> files_;
};

// Where a name is declared: in unnamed namespaces of files, and in headers that some of them include.
struct Uses {
  std::vector<std::string> files, meanings;
  std::set<std::string> headers;
  bool passed_on = false;  // a function, somewhere where it is not called
};

std::vector<std::string> clashes(const fs::path& root) {
  Files files(root);
  std::vector<std::string> faults;
  for (const std::string_view top : kProductFolders) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (entry.path().filename() != "CMakeLists.txt") continue;
      std::map<std::string, Uses> names;
      std::set<std::string> headers;
      for (const fs::path& path : united_files(entry.path())) {
        const std::string file = fs::relative(path, root).generic_string();
        files.add_headers(file, headers);
        std::set<std::string> here;  // overloads of one file are the compiler's business
        for (const test::Declaration& d : files.read(file).source.declarations) {
          if (!d.in_unnamed || !here.insert(d.name + meaning(d)).second) continue;
          Uses& uses = names[d.scope + "::" + d.name];
          if (uses.files.empty() || uses.files.back() != file) uses.files.push_back(file);
          uses.meanings.push_back(meaning(d));
          uses.passed_on |= d.parameters && is_passed_on(d.name, files.read(file).source.code);
        }
      }
      for (const std::string& header : headers) {
        for (const test::Declaration& d : files.read(header).source.declarations) {
          const auto found = names.find(d.scope + "::" + d.name);
          if (found == names.end()) continue;
          const std::vector<std::string>& there = found->second.meanings;
          const bool meets = std::any_of(there.begin(), there.end(), [&](const std::string& m) {
            return would_meet({m, meaning(d)});
          });
          if (meets) found->second.headers.insert(header);
        }
      }
      for (const auto& [name, uses] : names) {
        const bool unclear = uses.passed_on && uses.files.size() > 1;
        if (!would_meet(uses.meanings) && !unclear && uses.headers.empty()) continue;
        std::string where;
        for (const std::string& file : uses.files) where += (where.empty() ? "" : ", ") + file;
        for (const std::string& header : uses.headers) where += ", " + header;
        faults.push_back(name + " in " + where);
      }
    }
  }
  std::sort(faults.begin(), faults.end());
  return faults;
}

// Types of the whole program defined in more than one file: the linker keeps one of their inline functions, and
// whoever meant the other reads past its end.
std::vector<std::string> types_defined_twice(const fs::path& root) {
  static const std::set<std::string> extensions = {".cpp", ".h", ".cu", ".cuh"};
  std::map<std::string, std::set<std::string>> files;
  for (const std::string_view top : kProductFolders) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (!extensions.contains(entry.path().extension())) continue;
      for (const test::Declaration& d : test::read_cpp(test::read_file(entry.path())).declarations) {
        static const std::regex type(R"((template <.*> ?)?(struct|class|union|enum)\b.*)");
        const bool is_nested = d.text.find(d.name + "::") != std::string::npos;  // struct Outer::Impl
        if (d.in_unnamed || d.parameters || is_nested || !std::regex_match(d.text, type)) continue;
        files[d.scope + "::" + d.name].insert(fs::relative(entry.path(), root).generic_string());
      }
    }
  }
  std::vector<std::string> faults;
  for (const auto& [name, where] : files) {
    if (where.size() > 1) faults.push_back(fmt::format("{} in {}", name, fmt::join(where, ", ")));
  }
  return faults;
}

std::vector<std::string> long_functions(const fs::path& root) {
  static constexpr std::array<std::string_view, 4> kExtensions = {".cpp", ".h", ".cu", ".cuh"};
  std::vector<std::string> faults;
  for (const std::string_view top : kProductFolders) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (std::find(kExtensions.begin(), kExtensions.end(), entry.path().extension()) == kExtensions.end())
        continue;
      for (const test::FunctionBody& f : test::read_cpp(test::read_file(entry.path())).functions) {
        if (f.lines > kMostLines && f.statements > kStatementsOfATable)
          faults.push_back(fmt::format("{}:{}: {} has {} lines",
                                       fs::relative(entry.path(), root).generic_string(), f.line, f.name,
                                       f.lines));
      }
    }
  }
  std::sort(faults.begin(), faults.end());
  return faults;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// Else CMAKE's unity builds (scripts/demo) fail where the two come to lie in one unit: rename one, or share it.
TEST(Architecture, FilesOfALibraryShareNoNames) {
  EXPECT_EQ(joined(clashes(test::source_dir())), "");
}

TEST(Architecture, NoTypeIsDefinedTwice) {
  EXPECT_EQ(joined(types_defined_twice(test::source_dir())), "");
}

TEST(Architecture, FunctionsFitTwoScreens) {
  EXPECT_EQ(joined(long_functions(test::source_dir())), "");
}

// The reading itself, on planted trees.
TEST(Architecture, SharedNamesAreFound) {
  const test::TempDir tree;
  test::write_file(tree / "core/a/CMakeLists.txt",
                   "assay_library(a LOOPS SUBFOLDERS sub APART c.cpp LINK b)\n");
  test::write_file(tree / "core/a/a.cpp", R"cpp(
    namespace assay {
    struct Widely {};
    namespace {
    constexpr int kMost = 3, *other = nullptr;  // struct Comment {};
    const char* text = R"(struct Raw {};)";
    template <class T>
    struct Sizes {
      int most() { return 1; }
    };
    struct Forward;
    enum class Kind { a, b };
    using Strings = std::vector<std::string>;
    using Meaning = int;
    namespace fs = std::filesystem;
    [[nodiscard]] int read(const std::string& text, int base = 1'0) {
      return '{' + base;
    }
    int reads(int a);
    int chosen(int a);
    auto all = std::all_of(x, chosen);
    const std::map<int, int>& table() {
      static const std::map<int, int> all = {{1, 2}};
      return all;
    }
    }  // namespace
    int open() {
      return 1;
    }
    Widely::Widely() : a_{1}, b_(2) {
      c();
    }
    }  // namespace assay
  )cpp");
  test::write_file(tree / "core/a/sub/b.cpp", R"cpp(
    namespace assay {
    namespace {
    int first = f({1, 2}), kMost;
    struct Sizes final : Base<int> {};
    struct Forward;
    enum Kind : int { c };
    using Strings = std::vector<std::string>;
    using Meaning = long;
    namespace fs = std::filesystem;
    int read(const std::string& file, int) {
      return 0;
    }
    int reads(double a);
    int chosen(double a);
    const std::map<int, int>& table() {
      return x;
    }
    struct Widely;
    void open(int);
    }  // namespace
    namespace elsewhere {
    namespace {
    struct Comment {};
    struct Raw {};
    int table();
    }  // namespace
    }  // namespace elsewhere
    }  // namespace assay
  )cpp");
  test::write_file(tree / "core/a/c.cpp", "namespace assay { namespace { struct Sizes {}; } }\n");
  test::write_file(tree / "core/a/d.cpp",
                   "#include <hwy/foreach_target.h>\nnamespace assay { namespace { struct Sizes {}; } }\n");
  test::write_file(tree / "core/b/CMakeLists.txt", "assay_library(b)\n");
  test::write_file(
      tree / "core/b/a.cpp",
      "#include \"core/b/a.h\"\nnamespace assay { namespace { struct Sizes {}; enum class Told { a };\n"
      "struct Untold {}; int found(const int& x); int nothing(); } }\n");
  test::write_file(tree / "core/b/a.h", "#pragma once\n#include \"core/b/b.h\"\n");
  test::write_file(
      tree / "core/b/b.h",
      "namespace assay { class Told {}; struct Untold; int found(const int& y); int nothing(int z); }\n");
  const std::string both = " in core/a/a.cpp, core/a/sub/b.cpp\n";
  const std::string header = " in core/b/a.cpp, core/b/b.h\n";
  EXPECT_EQ(joined(clashes(tree.path())), "assay::Kind" + both + "assay::Meaning" + both + "assay::Sizes" +
                                              both + "assay::Told" + header + "assay::chosen" + both +
                                              "assay::found" + header + "assay::kMost" + both +
                                              "assay::read" + both + "assay::table" + both);
}

TEST(Architecture, TypesDefinedTwiceAreFound) {
  const test::TempDir tree;
  test::write_file(tree / "core/a.h",
                   "namespace assay { struct Stage { int a; }; struct Told; enum class Kind { a };\n"
                   "class Pass { struct Impl; }; template <class T> struct Of {}; int stage(); }\n");
  test::write_file(
      tree / "cli/b.h",
      "namespace assay { class Stage : Base { long b; }; struct Told; namespace b { struct Told {}; }\n"
      "struct Pass::Impl {}; template <class T> struct Of {}; namespace { enum class Kind {}; } }\n");
  EXPECT_EQ(joined(types_defined_twice(tree.path())),
            "assay::Of in cli/b.h, core/a.h\nassay::Stage in cli/b.h, core/a.h\n");
}

TEST(Architecture, LongFunctionsAreFound) {
  const test::TempDir tree;
  const auto function = [](std::string_view head, std::size_t lines, std::string_view line) {
    std::string text = std::string(head) + " {\n";
    for (std::size_t i = 0; i + 2 < lines; ++i) text += std::string(line) + "\n";
    return text + "}\n";
  };
  test::write_file(tree / "cli/a.cpp", "namespace assay {\n" + function("int fits(int a)", 80, "f();") +
                                           function("Class::Class() : a_{1}", 81, "f();") + "}\n");
  test::write_file(tree / "cli/b.h",
                   "struct Class : Base {\n public:\n  int a = 1;\n" +
                       function("void inside(const X& x = {}) const override", 90, "{ f(); }") +
                       "};\nauto after() -> int { return 1; }\n");
  test::write_file(tree / "cli/c.cpp", function("const std::map<int, int>& table()", 200, "{1, 2},") +
                                           "const int rows[] = {\n" + std::string(100, '\n') + "};\n");
  EXPECT_EQ(joined(long_functions(tree.path())),
            "cli/a.cpp:82: Class has 81 lines\ncli/b.h:4: inside has 90 lines\n");
}

}  // namespace
}  // namespace assay
