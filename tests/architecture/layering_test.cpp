// The house rules that a compiler does not know: includes go down, libraries neither print nor exit, files
// are short.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// A folder and those it may include from (docs/design.md), itself aside. A command's own folder is a room like
// any other; `refimpl/run*` and `kernels/plugin.h` lie in their parents.
struct Room {
  std::string_view folder;
  std::vector<std::string_view> below;
};
const std::vector<Room>& rooms() {
  static const std::vector<Room> all = {
      {"core/system", {}},
      {"core/numeric", {"core/system"}},
      {"core/formats", {"core/system", "core/numeric"}},
      {"core/formats/hash", {"core/system", "core/formats"}},
      {"core/formats/xet", {"core/system", "core/formats"}},
      {"core/formats/logprobs", {"core/system", "core/formats"}},
      {"core/model", {"core/system", "core/numeric", "core/formats"}},
      {"core/model/families", {"core/system", "core/model"}},
      {"core/model/formats", {"core/system", "core/numeric", "core/formats", "core/model"}},

      {"refimpl/ops", {"core/system", "core/numeric", "core/model"}},
      {"refimpl/step", {"core/system", "refimpl/ops"}},
      {"refimpl/models",
       {"core/system", "core/numeric", "core/formats", "core/model", "refimpl/ops", "refimpl/step"}},
      {"refimpl/sampling", {"core/system", "refimpl/ops"}},
      {"refimpl/grammar", {"core/system", "core/formats", "refimpl/ops", "refimpl/sampling"}},
      {"refimpl/speculation",
       {"core/system", "refimpl/ops", "refimpl/step", "refimpl/sampling", "refimpl/models"}},
      {"refimpl/engine",
       {"core/system", "core/numeric", "core/formats", "refimpl/ops", "refimpl/step", "refimpl/sampling",
        "refimpl/models", "refimpl/speculation"}},
      {"refimpl/ranks",
       {"core/system", "core/numeric", "core/model", "refimpl/ops", "refimpl/step", "refimpl/models"}},
      {"refimpl/block_store",
       {"core/system", "refimpl/ops", "refimpl/step", "refimpl/engine", "core/numeric"}},
      {"refimpl/claims",
       {"core/system", "core/numeric", "core/formats", "refimpl/ops", "refimpl/step", "refimpl/sampling",
        "refimpl/models", "refimpl/speculation", "refimpl/engine", "refimpl/ranks", "refimpl/block_store",
        "refimpl/caches", "refimpl/handoff"}},
      {"refimpl/caches", {"core/system", "core/numeric", "refimpl/ops", "refimpl/step", "refimpl/models"}},
      {"refimpl/handoff",
       {"core/system", "core/formats", "core/model", "refimpl/ops", "refimpl/step", "refimpl/models",
        "refimpl/speculation", "refimpl/engine", "refimpl/ranks", "refimpl/block_store"}},
      {"refimpl/replay",
       {"core/system", "refimpl/ops", "refimpl/models", "refimpl/engine", "refimpl/block_store"}},
      {"refimpl/endpoint", {"core/system", "core/formats"}},
      {"refimpl/bench_url",
       {"core/system", "core/numeric", "core/formats", "refimpl/sampling", "refimpl/replay",
        "refimpl/endpoint"}},
      {"refimpl/fingerprint",
       {"core/system", "core/formats", "core/formats/logprobs", "refimpl/endpoint", "refimpl/bench_url"}},
      {"refimpl/jinja", {"core/system"}},
      {"refimpl/tokenizers", {"core/system", "core/formats", "refimpl/jinja"}},
      {"refimpl",
       {"core/system", "core/numeric", "core/formats", "core/model", "refimpl/ops", "refimpl/step",
        "refimpl/models", "refimpl/sampling", "refimpl/grammar", "refimpl/speculation", "refimpl/engine",
        "refimpl/ranks", "refimpl/block_store", "refimpl/claims", "refimpl/jinja", "refimpl/tokenizers",
        "refimpl/caches", "refimpl/handoff", "refimpl/endpoint"}},
      {"refimpl/serve",
       {"core/system", "core/numeric", "core/formats", "refimpl", "refimpl/ops", "refimpl/step",
        "refimpl/models", "refimpl/sampling", "refimpl/grammar", "refimpl/engine", "refimpl/block_store",
        "refimpl/caches", "refimpl/endpoint", "refimpl/jinja", "refimpl/tokenizers"}},

      {"kernels", {}},
      {"kernels/operands", {"refimpl/ops"}},
      {"kernels/registry", {"refimpl/ops", "kernels/operands"}},
      {"kernels/cpu", {"core/system", "core/numeric", "refimpl/ops", "kernels/operands"}},
      {"kernels/cuda",
       {"core/system", "core/numeric", "refimpl/ops", "kernels/operands", "kernels/registry"}},
      {"kernels/library", {"core/system", "kernels/registry"}},
      {"kernels/selection",
       {"core/system", "core/formats", "refimpl/ops", "kernels/operands", "kernels/registry", "kernels/cpu",
        "kernels/cuda", "kernels/library"}},
      {"kernels/harness",
       {"core/system", "core/numeric", "core/formats", "core/model", "refimpl/ops", "kernels/operands",
        "kernels/registry", "kernels/cpu", "kernels/cuda", "kernels/selection"}},
      {"kernels/plugin", {"core/system", "core/numeric", "kernels", "kernels/registry", "kernels/harness"}},
      {"kernels/dumps", {"core/system", "core/numeric", "core/formats", "kernels/harness"}},
      {"kernels/model_compare",
       {"core/system", "core/numeric", "refimpl/ops", "refimpl/step", "refimpl/models", "refimpl/engine",
        "kernels/operands", "kernels/registry", "kernels/harness"}},
      {"kernels/cache_compare",
       {"core/system", "refimpl/ops", "refimpl/models", "refimpl/caches", "refimpl/engine",
        "kernels/model_compare"}},
      {"kernels/logprobs",
       {"core/system", "core/numeric", "core/formats", "core/formats/logprobs", "refimpl/ops", "refimpl/step",
        "refimpl/models", "refimpl/engine", "refimpl/tokenizers", "refimpl/endpoint", "refimpl/sampling",
        "kernels/harness", "kernels/model_compare"}},
      {"kernels/compare",
       {"core/system",
        "core/numeric",
        "core/formats",
        "core/formats/logprobs",
        "core/model",
        "refimpl/models",
        "refimpl/ranks",
        "refimpl/claims",
        "refimpl/tokenizers",
        "refimpl/endpoint",
        "kernels/logprobs",
        "kernels/cuda",
        "kernels/selection",
        "kernels/harness",
        "kernels/plugin",
        "kernels/dumps",
        "kernels/model_compare",
        "refimpl/caches",
        "kernels/cache_compare",
        "refimpl/handoff"}},
      {"kernels/gate",
       {"core/system", "core/numeric", "core/formats", "kernels/cuda", "kernels/selection", "kernels/harness",
        "kernels/plugin"}},

      {"verify/signature", {"core/system", "core/formats"}},
      {"verify/claims", {"core/system", "core/formats", "core/formats/hash"}},
      {"verify/expected", {"core/system", "core/formats", "verify/signature", "verify/claims"}},
      {"verify",
       {"core/system", "core/numeric", "core/formats", "core/formats/hash", "core/formats/xet", "core/model",
        "verify/signature", "verify/claims", "verify/expected"}},
      {"paramcount", {"core/system", "core/numeric", "core/formats", "core/model"}},
      {"convert", {"core/system", "core/numeric", "core/formats", "core/formats/hash", "core/model"}},

      {"cli/check",
       {"core/system", "core/numeric", "core/formats", "core/model", "refimpl", "refimpl/ops",
        "refimpl/engine", "kernels/harness", "kernels/selection", "verify", "paramcount", "convert"}},
      {"cli/gate",
       {"core/system", "core/numeric", "core/formats", "refimpl/ops", "refimpl/engine", "refimpl/ranks",
        "refimpl/claims", "refimpl/caches", "kernels/selection", "kernels/harness", "kernels/model_compare",
        "kernels/cache_compare", "kernels/gate", "convert"}},
      {"cli/late", {"core/system"}},
      {"cli",
       {"core/system", "refimpl", "refimpl/replay", "refimpl/bench_url", "refimpl/fingerprint",
        "refimpl/serve", "kernels/selection", "kernels/compare", "kernels/gate", "verify", "paramcount",
        "convert", "cli/check", "cli/gate"}}};
  return all;
}
constexpr std::array<std::string_view, 7> kProductFolders = {"core",    "refimpl",    "kernels", "verify",
                                                             "convert", "paramcount", "cli"};
constexpr std::array<std::string_view, 2> kOtherFolders = {"tests", "bench"};
constexpr std::size_t kMostLines = 600;

const Room* room_of(std::string_view path) {
  const std::string_view folder = path.substr(0, std::min(path.size(), path.rfind('/')));
  const auto it =
      std::find_if(rooms().begin(), rooms().end(), [&](const Room& room) { return room.folder == folder; });
  return it == rooms().end() ? nullptr : &*it;
}

// nullopt, or what is wrong with `file` including `target`.
std::optional<std::string> include_fault(std::string_view file, std::string_view target) {
  const Room* from = room_of(file);
  const Room* to = room_of(target);
  if (from == nullptr) return "lies in no room of the house";
  if (to == nullptr) return "not a header of the house, written from its root";
  if (from == to || std::find(from->below.begin(), from->below.end(), to->folder) != from->below.end())
    return std::nullopt;
  return fmt::format("{} is not below {}", to->folder, from->folder);
}

bool is_source(const fs::path& path) {
  static constexpr std::array<std::string_view, 4> kExtensions = {".cpp", ".h", ".cu", ".cuh"};
  return std::find(kExtensions.begin(), kExtensions.end(), path.extension().string()) != kExtensions.end();
}

// The line without // comments and with the insides of literals blanked.
std::string code_of(std::string_view line) {
  std::string code;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == '\\') {
        ++i;
      } else if (c == quote) {
        quote = 0;
      }
      continue;
    }
    if (line.substr(i).starts_with("//")) break;
    // 1'000 is no character literal.
    if (c == '"' || (c == '\'' && (i == 0 || !std::isalnum(static_cast<unsigned char>(line[i - 1])))))
      quote = c;
    code += c;
  }
  return code;
}

struct Forbidden {
  std::regex pattern;
  std::string why;
  std::vector<std::string_view> allowed_in;  // prefixes of paths
};

const std::vector<Forbidden>& forbidden() {
  // Commands speak (through Output, for the results); of the libraries only what they speak through does.
  static const std::vector<Forbidden> rules = {
      {std::regex(R"(^\s*#\s*include\s*<iostream>)"), "includes <iostream>", {}},
      {std::regex(R"((^|[^\w.>])(exit|_exit|_Exit|quick_exit|abort|terminate)\s*\()"),
       "ends the process",
       {"cli/"}},
      {std::regex(
           R"((^|[^\w.>])(printf|vprintf|fprintf|puts|fputs|putchar)\s*\(|std::(cout|cerr)|fmt::print\b)"),
       "prints",
       {"cli/", "verify/", "convert/", "paramcount/", "refimpl/run", "kernels/compare/", "kernels/gate/",
        "core/system/report.cpp", "core/system/progress.cpp"}},
      // What differs between models is data that their families state; everything else knows no name.
      {std::regex(
           R"(\b(family|architecture|model_type)(_|\b)(\(\)|(\.|->)name)?\s*[!=]=\s*")"
           R"(|"\s*[!=]=\s*([\w.]|->)*\b(family|architecture|model_type)(_|\b))"
           R"(|\b(family|architecture|model_type)(_|\b)(\(\))?\.(starts_with|find|contains|compare)\(\s*")"),
       "asks for the name of a family or an architecture",
       {"core/model/families/", "refimpl/models/"}}};
  return rules;
}

void check_line(const std::string& file, std::string_view line, const std::string& where,
                std::vector<std::string>& faults) {
  static const std::regex include(R"(^\s*#\s*include\s*["<]([^">]+)[">])");
  std::match_results<std::string_view::const_iterator> match;
  if (std::regex_search(line.begin(), line.end(), match, include)) {
    const std::string target = match[1].str();
    const bool quoted = line.find('"') != std::string_view::npos;
    const bool ours = room_of(target) != nullptr;
    if (const auto fault = include_fault(file, target); fault && (quoted || ours)) {
      faults.push_back(where + ": #include of " + target + ": " + *fault);
    }
  }
  const std::string code = code_of(line);
  for (const Forbidden& rule : forbidden()) {
    const bool allowed = std::any_of(rule.allowed_in.begin(), rule.allowed_in.end(),
                                     [&](std::string_view prefix) { return file.starts_with(prefix); });
    if (!allowed && std::regex_search(code, rule.pattern)) faults.push_back(where + ": " + rule.why);
  }
}

// Every breach of the rules in the source tree at `root`, one line each, sorted.
std::vector<std::string> house_faults(const fs::path& root) {
  std::vector<std::string> faults;
  const auto walk = [&](std::string_view folder, bool is_product) {
    if (!fs::exists(root / folder)) return;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file() || !is_source(entry.path())) continue;
      const std::string file = fs::relative(entry.path(), root).generic_string();
      std::istringstream text(test::read_file(entry.path()));
      std::size_t number = 0;
      for (std::string line; std::getline(text, line);) {
        ++number;
        if (is_product) check_line(file, line, file + ":" + std::to_string(number), faults);
      }
      if (number > kMostLines) faults.push_back(file + ": has " + std::to_string(number) + " lines");
    }
  };
  for (const std::string_view folder : kProductFolders) walk(folder, true);
  for (const std::string_view folder : kOtherFolders) walk(folder, false);
  std::sort(faults.begin(), faults.end());
  return faults;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// Nothing that lies below a room lies above it, too.
TEST(Architecture, NoRoomIsBelowItself) {
  for (const Room& room : rooms()) {
    std::vector<std::string_view> reached = room.below;
    for (std::size_t i = 0; i < reached.size(); ++i) {
      EXPECT_NE(reached[i], room.folder);
      const Room* next = room_of(std::string(reached[i]) + "/x.h");
      ASSERT_NE(next, nullptr) << reached[i];
      for (const std::string_view more : next->below) {
        if (std::find(reached.begin(), reached.end(), more) == reached.end()) reached.push_back(more);
      }
    }
  }
}

TEST(Architecture, TheHouseKeepsItsRules) {
  EXPECT_EQ(joined(house_faults(test::source_dir())), "");
}

// The check itself, on a planted tree: each breach is found, each thing that only looks like one is not.
TEST(Architecture, BreachesAreFound) {
  const test::TempDir tree;
  test::write_file(tree / "core/system/a.h", "#include \"core/numeric/x.h\"\n");
  test::write_file(tree / "core/formats/b.cpp", "#include <verify/verify.h>\n#include \"core/system/a.h\"\n");
  test::write_file(tree / "core/model/c.h", "#include \"sibling.h\"\n#include <vector>\n");
  test::write_file(tree / "verify/d.cpp",
                   "#include \"convert/convert.h\"\n#include \"kernels/registry/registry.h\"\n");
  test::write_file(tree / "refimpl/engine/e.cpp", "  #  include \"kernels/registry/registry.h\"\n");
  test::write_file(tree / "refimpl/run.cpp", "#include \"refimpl/engine/engine.h\"\n");
  test::write_file(tree / "refimpl/models/f.h", "#include \"refimpl/run.h\"\n");
  test::write_file(tree / "kernels/cpu/g.cpp",
                   "#include \"refimpl/ops/interface.h\"\n#include \"refimpl/engine/e.h\"\n");
  test::write_file(tree / "kernels/harness/h.cu", "#include \"refimpl/engine/e.h\"\n");
  test::write_file(tree / "core/loose.h", "#include \"core/system/a.h\"\n");
  test::write_file(tree / "refimpl/ops/i.cpp",
                   "#include <iostream>\n"
                   "void f() { std::exit(1); }\n"
                   "void g() { printf(\"x\"); }\n"
                   "void h() { std::cout << 1; }\n"
                   "int i = error.exit_code() + 1'000; // exit(1) and printf(2)\n"
                   "auto j = snprintf(text, 9, \"printf(\\\" exit(\");\n");
  test::write_file(tree / "cli/main.cpp",
                   "#include \"verify/verify.h\"\nint main() { std::printf(\"\"); exit(3); }\n");
  test::write_file(tree / "paramcount/j.cpp", "void f() { fmt::print(\"x\"); abort(); }\n");
  test::write_file(
      tree / "convert/k.cpp",
      "bool a = tree.family == \"llama\";\n"
      "bool b = \"qwen2\" != config->model_type();\n"
      "bool c = family->name == \"kimi\" || x;\n"
      "bool d = family_.architecture != \"deepseek2\";\n"
      "bool e = config.model_type().starts_with(\"qwen\");\n"
      "bool f = family == other; auto g = Mutant{.family = \"norms\"}; // family == \"llama\"\n");
  test::write_file(tree / "refimpl/models/l.cpp", "bool a = tree.family == \"llama\";\n");
  test::write_file(tree / "tests/long_test.cpp", std::string(601, '\n'));
  test::write_file(tree / "tests/short_test.cpp", "#include <iostream>\n" + std::string(599, '\n'));
  EXPECT_EQ(
      joined(house_faults(tree.path())),
      "convert/k.cpp:1: asks for the name of a family or an architecture\n"
      "convert/k.cpp:2: asks for the name of a family or an architecture\n"
      "convert/k.cpp:3: asks for the name of a family or an architecture\n"
      "convert/k.cpp:4: asks for the name of a family or an architecture\n"
      "convert/k.cpp:5: asks for the name of a family or an architecture\n"
      "core/formats/b.cpp:1: #include of verify/verify.h: verify is not below core/formats\n"
      "core/loose.h:1: #include of core/system/a.h: lies in no room of the house\n"
      "core/model/c.h:1: #include of sibling.h: not a header of the house, written from its root\n"
      "core/system/a.h:1: #include of core/numeric/x.h: core/numeric is not below core/system\n"
      "kernels/cpu/g.cpp:2: #include of refimpl/engine/e.h: refimpl/engine is not below kernels/cpu\n"
      "kernels/harness/h.cu:1: #include of refimpl/engine/e.h: refimpl/engine is not below kernels/harness\n"
      "paramcount/j.cpp:1: ends the process\n"
      "refimpl/engine/e.cpp:1: #include of kernels/registry/registry.h: kernels/registry is not below "
      "refimpl/engine\n"
      "refimpl/models/f.h:1: #include of refimpl/run.h: refimpl is not below refimpl/models\n"
      "refimpl/ops/i.cpp:1: includes <iostream>\n"
      "refimpl/ops/i.cpp:2: ends the process\n"
      "refimpl/ops/i.cpp:3: prints\n"
      "refimpl/ops/i.cpp:4: prints\n"
      "tests/long_test.cpp: has 601 lines\n"
      "verify/d.cpp:1: #include of convert/convert.h: convert is not below verify\n"
      "verify/d.cpp:2: #include of kernels/registry/registry.h: kernels/registry is not below verify\n");
}

}  // namespace
}  // namespace assay
