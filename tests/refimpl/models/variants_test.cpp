// Options of a config that data/models/ has at one value only: the same weights under a changed config.json,
// against transformers in float64 and in bfloat16 (data/make_variants.py, data/make_latent_variants.py).
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/refimpl/models/golden_run.h"

namespace assay {
namespace {

using test::folder;
using test::largest;
using test::largest_difference;
using test::Numbers;
using test::Runner;

struct Variant {
  std::string fixtures, model, name;
  nlohmann::json changes;
};
std::ostream& operator<<(std::ostream& out, const Variant& variant) {
  return out << variant.model << "." << variant.name;
}

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const char* fixtures : {"variants", "latent_variants"}) {
    const auto known = nlohmann::json::parse(
        test::read_file(test::source_dir() / "data/fixtures" / fixtures / "VARIANTS.json"));
    for (const auto& [model, of_model] : known.items()) {
      for (const auto& [name, changes] : of_model.items()) all.push_back({fixtures, model, name, changes});
    }
  }
  return all;
}

class Variants : public testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    const fs::path model = folder(GetParam().model);
    auto config = nlohmann::json::parse(test::read_file(model / "config.json"));
    config.update(GetParam().changes);
    for (const auto& [key, value] : GetParam().changes.items()) {
      if (value == "(absent)") config.erase(key);
    }
    test::write_file(place / "config.json", config.dump());
    fs::create_symlink(model / "model.safetensors", place / "model.safetensors");
    const std::string name = GetParam().model + "." + GetParam().name;
    tokens = test::tokens_of(golden().at(name + ".tokens"));
    exact = golden().at(name + ".f64").values;
    half = golden().at(name + ".bf16").values;
  }
  // After as many of the last tokens as the fixture has.
  std::vector<double> logits(Precision precision) const {
    std::vector<double> all = Runner(place.path(), precision, {.mla = MlaForm::naive})(tokens);
    all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(exact.size()));
    return all;
  }
  static const std::map<std::string, Numbers>& golden() {
    static std::map<std::string, std::map<std::string, Numbers>> read;
    std::map<std::string, Numbers>& tensors = read[GetParam().fixtures];
    if (tensors.empty())
      tensors = test::read_tensors(test::source_dir() / "data/fixtures" / GetParam().fixtures /
                                   "variants.safetensors");
    return tensors;
  }

  test::TempDir place;
  std::vector<TokenId> tokens;
  std::vector<double> exact, half;
};

TEST_P(Variants, DoubleAgreesWithDoubleTransformers) {
  EXPECT_LE(largest_difference(logits(Precision::f64), exact), 1e-11 * largest(exact));
}

TEST_P(Variants, HalfRoundsWherePyTorchDoes) {
  EXPECT_LE(largest_difference(logits(Precision::bf16), half),
            (GetParam().model == "deepseek-v4" ? 2 : test::farthest_from_pytorch(GetParam().model)) *
                largest_difference(half, exact));
}

INSTANTIATE_TEST_SUITE_P(Models, Variants, testing::ValuesIn(variants()), [](const auto& info) {
  return std::regex_replace(info.param.model + "_" + info.param.name, std::regex("[.-]"), "_");
});

}  // namespace
}  // namespace assay
