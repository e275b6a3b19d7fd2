// Language models inside others: the tensors under a prefix, the config under text_config. What they compute is what
// they compute alone.
#include <nlohmann/json.hpp>

#include <cstring>

#include "tests/refimpl/models/golden_run.h"

namespace assay {
namespace {

using test::folder;
using test::Runner;

// A model of data/models as a part of another: every name behind "language_model.".
void nest(const std::string& model, const nlohmann::json& outer, const test::TempDir& place) {
  auto config = outer;
  config["text_config"] = nlohmann::json::parse(test::read_file(folder(model) / "config.json"));
  test::write_file(place / "config.json", config.dump());
  const std::string bytes = test::read_file(folder(model) / "model.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const auto header = nlohmann::json::parse(bytes.substr(sizeof length, length));
  nlohmann::json renamed;
  for (const auto& [name, entry] : header.items())
    renamed[name == "__metadata__" ? name : "language_model." + name] = entry;
  test::write_file(
      place / "model.safetensors",
      test::safetensors_bytes(renamed.dump(), std::string_view(bytes).substr(sizeof length + length)));
}

TEST(NestedText, KimiK25IsKimiK2) {
  const test::TempDir place;
  nest("kimi-k2", {{"architectures", {"KimiK25ForConditionalGeneration"}}, {"model_type", "kimi_k25"}},
       place);
  const std::vector<TokenId> tokens = {3, 14, 15, 92, 65, 35, 8};
  const std::vector<double> alone = Runner("kimi-k2", Precision::f64)(tokens);
  EXPECT_EQ(Runner(place.path(), Precision::f64)(tokens), alone);
}

}  // namespace
}  // namespace assay
