// Every tensor's name, shape and number of copies against what transformers builds (data/make_module_oracle.py), or the
// code that is published with the weights (data/make_own_code_oracle.py), or MLX's (data/make_mlx_oracle.py), or Mistral's
// (data/make_mistral_oracle.py), or, of draft models, speculators (data/make_draft_oracle.py).
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "core/model/module_tree.h"
#include "core/system/file.h"
#include "core/system/text.h"
#include "tests/support/paths.h"
#include "tests/support/published_config.h"
#include "tests/support/support.h"

namespace assay {
namespace {

// "model.layers.#.mlp.up_proj.weight 112x48" -> copies
using Census = std::map<std::string, std::uint64_t>;

struct Oracle {
  std::uint64_t parameters = 0;
  Census tensors;
};

Oracle read_oracle(const fs::path& path) {
  Oracle oracle;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("# parameters ")) oracle.parameters = parse_u64(line.substr(13)).value();
    if (line.starts_with("#")) continue;
    const auto first = line.find('\t'), second = line.rfind('\t');
    const std::string name = line.substr(0, first), shape = line.substr(first + 1, second - first - 1);
    const std::uint64_t copies = parse_u64(line.substr(second + 1)).value();
    oracle.tensors[name + " " + shape] += copies;
  }
  return oracle;
}

// Every number between dots, and every placeholder, as "#".
std::string pattern_of(const std::string& name) {
  std::string pattern;
  std::stringstream segments(name);
  for (std::string segment; std::getline(segments, segment, '.');) {
    const bool index = segment == "{layer}" || segment == "{expert}" || parse_u64(segment).has_value();
    if (segment == "expert_{expert}") segment = "expert_#";
    pattern += (pattern.empty() ? "" : ".") + (index ? "#" : segment);
  }
  return pattern;
}

Census census_of(const ModuleTree& tree) {
  Census census;
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (where.mtp || spec.storage != Storage::own) return;
    std::string shape;
    for (const std::uint64_t dimension : spec.shape) {
      shape += (shape.empty() ? "" : "x") + std::to_string(dimension);
    }
    census[pattern_of(spec.name) + " " + shape] += where.copies;
  });
  return census;
}

std::uint64_t elements_of(std::string_view shape) {
  std::uint64_t product = 1;
  while (!shape.empty()) {
    const auto x = shape.find('x');
    product *= parse_u64(shape.substr(0, x)).value();
    shape.remove_prefix(x == std::string_view::npos ? shape.size() : x + 1);
  }
  return product;
}

bool is_tower(std::string_view name) {
  return name.starts_with("vision") || name.starts_with("multi_modal");
}

// A config of words that says nothing of a tower has none here; the library makes one by its defaults.
Oracle without_towers(Oracle oracle) {
  for (auto at = oracle.tensors.begin(); at != oracle.tensors.end();) {
    if (!is_tower(at->first)) {
      ++at;
      continue;
    }
    oracle.parameters -=
        elements_of(std::string_view(at->first).substr(at->first.find(' ') + 1)) * at->second;
    at = oracle.tensors.erase(at);
  }
  return oracle;
}

void expect_equal(const ModuleTree& tree, const Oracle& whole) {
  const Oracle oracle = tree.towers.empty() && tree.vocabulary != 0 ? without_towers(whole) : whole;
  ASSERT_FALSE(oracle.tensors.empty());
  const Census census = census_of(tree);
  for (const auto& [tensor, copies] : oracle.tensors) {
    const auto found = census.find(tensor);
    EXPECT_EQ(found == census.end() ? 0 : found->second, copies) << tensor;
  }
  for (const auto& [tensor, copies] : census)
    EXPECT_TRUE(oracle.tensors.contains(tensor)) << tensor << " is ours";
  const Totals totals = count(tree);
  EXPECT_EQ(totals.total + totals.towers, oracle.parameters);
}

fs::path fixtures() {
  return test::source_dir() / "data" / "fixtures";
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

fs::path oracle_of(const std::string& name) {
  return fixtures() / "modules" / (name + ".tsv");
}

std::string small_config(const std::string& name) {
  return fixtures() / "configs" / (name + ".json");
}

std::vector<std::string> small_configs() {
  std::vector<std::string> paths;
  for (const std::string& name : names_in(fixtures() / "configs")) paths.push_back(small_config(name));
  return paths;
}

// Of models whose authors' code was asked, MLX's, Mistral's of its own files, and speculators' of drafts.
constexpr const char *kOwnCode = "own_code_configs", *kMlx = "mlx_configs", *kMistral = "mistral_params",
                     *kDrafts = "draft_configs";

std::string config_in(const char* folder, const std::string& name) {
  return fixtures() / folder / (name + ".json");
}

std::vector<std::string> configs_in(const char* folder) {
  std::vector<std::string> paths;
  for (const std::string& name : names_in(fixtures() / folder)) paths.push_back(config_in(folder, name));
  return paths;
}

// Three have no oracle, for transformers has not their code: published_totals_test.cpp counts them.
std::vector<std::string> published_configs() {
  std::vector<std::string> paths;
  for (const std::string& name : names_in(test::published_configs())) {
    if (fs::exists(oracle_of(name))) paths.push_back(test::published_config(name));
  }
  return paths;
}

class Families : public testing::TestWithParam<std::string> {};

TEST_P(Families, HaveTheTensorsOfTransformers) {
  const fs::path config = GetParam();
  expect_equal(describe(ModelConfig::read(config)), read_oracle(oracle_of(config.stem().string())));
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = fs::path(info.param).stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Small, Families, testing::ValuesIn(small_configs()), test_name);
INSTANTIATE_TEST_SUITE_P(OwnCode, Families, testing::ValuesIn(configs_in(kOwnCode)), test_name);
INSTANTIATE_TEST_SUITE_P(Mlx, Families, testing::ValuesIn(configs_in(kMlx)), test_name);
INSTANTIATE_TEST_SUITE_P(Drafts, Families, testing::ValuesIn(configs_in(kDrafts)), test_name);
INSTANTIATE_TEST_SUITE_P(Mistral, Families, testing::ValuesIn(configs_in(kMistral)), test_name);
INSTANTIATE_TEST_SUITE_P(Published, Families, testing::ValuesIn(published_configs()), test_name);

TEST(Oracle, EachHasAConfigThatIsHeldToIt) {
  EXPECT_EQ(published_configs().size(), 26U);
  for (const std::string& name : names_in(fixtures() / "modules"))
    EXPECT_TRUE(fs::exists(small_config(name)) || fs::exists(config_in(kOwnCode, name)) ||
                fs::exists(config_in(kMlx, name)) || fs::exists(config_in(kMistral, name)) ||
                fs::exists(config_in(kDrafts, name)) || fs::exists(test::published_config(name)))
        << name;
}

TEST(Oracle, TowersAndProjectorsAreCountedApart) {
  const ModuleTree tree = describe(ModelConfig::read(test::published_config("gemma-3-4b-it")));
  EXPECT_TRUE(tree.not_counted.empty());
  EXPECT_EQ(count(tree).total, 3'880'263'168u);
  EXPECT_EQ(count(tree).towers, 416'866'032u + 2'950'272u);
}

}  // namespace
}  // namespace assay
