// `paramcount --tensors`: a line for each tensor, against the counts, the headers and the plan that others make.
#include "paramcount/tensor_list.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "core/system/json.h"
#include "paramcount/plan_cut.h"
#include "tests/support/paths.h"
#include "tests/support/published_config.h"
#include "tests/support/support.h"

namespace assay {
namespace {

Question question_for(const Model& model) {
  Question question;
  question.plan.format = model.format;
  return question;
}

// The payload of DeepSeek-V3's files: MTP, its copies and every scale.
TEST(TensorList, AddsUpToThePublishedBytes) {
  const Model model = load_model(test::published_config("DeepSeek-V3"), 1);
  std::uint64_t bytes = 0, tensors = 0, elements = 0;
  for_each_line(model, question_for(model), [&](const TensorLine& line) {
    EXPECT_FALSE(line.stored);
    if (line.spec->storage == Storage::tied || line.spec->storage == Storage::buffer) return;
    ++tensors;
    bytes += line.bytes;
    if (line.spec->storage == Storage::own) elements += line.spec->elements.value();
  });
  EXPECT_EQ(elements, 671'026'419'200u + 11'610'068'224u);
  EXPECT_EQ(bytes, 688'574'839'360u);
  EXPECT_EQ(tensors, 46'183u);  // of the 91,991 stored, the others are scales
}

TEST(TensorList, TellsWhatACheckpointHolds) {
  const Model model = load_model(test::source_dir() / "data" / "tinylm", 1);
  std::uint64_t bytes = 0;
  std::map<std::string, std::string> types;
  for_each_line(model, question_for(model), [&](const TensorLine& line) {
    if (!line.stored) return;
    bytes += line.bytes;
    types[line.name] = line.type;
  });
  EXPECT_EQ(types["model.embed_tokens.weight"], "BF16");
  EXPECT_EQ(types["model.layers.0.self_attn.q_a_proj.weight"], "F8_E4M3 128x128");
  EXPECT_EQ(bytes, model.reconciliation->stored.bytes);  // of the headers
}

TEST(TensorList, ARankHoldsItsShare) {
  const Model model = load_model(test::published_config("DeepSeek-V3"), 1);
  Question question = question_for(model);
  question.layout = parse_layout("tp=8");
  std::map<std::string, std::vector<std::uint64_t>> shapes;
  for_each_line(model, question, [&](const TensorLine& line) { shapes[line.name] = line.rank_shape; });
  using Shape = std::vector<std::uint64_t>;
  EXPECT_EQ(shapes["model.embed_tokens.weight"], (Shape{129280 / 8, 7168}));
  EXPECT_EQ(shapes["model.layers.0.self_attn.q_b_proj.weight"], (Shape{128 * 192 / 8, 1536}));
  EXPECT_EQ(shapes["model.layers.0.self_attn.kv_a_proj_with_mqa.weight"], (Shape{576, 7168}));
  EXPECT_EQ(shapes["model.layers.0.self_attn.o_proj.weight"], (Shape{7168, 16384 / 8}));
  EXPECT_EQ(shapes["model.layers.60.mlp.experts.255.down_proj.weight"], (Shape{7168, 2048 / 8}));
}

// DBRX keeps the rows of all experts in one matrix.
TEST(TensorList, RowsOfExpertsAreDealtOut) {
  const ModelConfig config = ModelConfig::read(test::source_dir() / "data/fixtures/configs/dbrx.json");
  const ModuleTree tree = describe(config);
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence&) {
    if (spec.part != Part::routed_expert) return;
    const std::uint64_t width = spec.shape[0] / spec.stacked;
    Layout whole = parse_layout("tp=1"), apart = parse_layout("tp=2,ep=2");
    EXPECT_EQ(rank_shape(spec, whole), spec.shape);
    const std::uint64_t experts = (spec.stacked + 1) / 2;
    EXPECT_EQ(rank_shape(spec, apart)[0], experts * width) << spec.name;
    EXPECT_EQ(rank_shape(spec, apart)[1], spec.shape[1]);
  });
}

TEST(TensorList, DocumentsSayTheSame) {
  const Model model = load_model(test::source_dir() / "data" / "tinylm", 1);
  Question question = question_for(model);
  question.layout = parse_layout("tp=2");
  const Json document = render_tensor_json(model, question);
  const std::string csv = render_tensor_csv(model, question), table = render_tensor_table(model, question);
  std::size_t lines = 0;
  for (const char c : csv) lines += c == '\n' ? 1 : 0;
  EXPECT_EQ(document["tensors"].size() + 1, lines);
  EXPECT_EQ(document["layout"], "tp=2");
  for (const Json& tensor : document["tensors"]) {
    const std::string name = tensor["name"];
    EXPECT_NE(csv.find("\n" + name + ","), std::string::npos) << name;
    EXPECT_NE(table.find("\n" + name + " "), std::string::npos) << name;
    EXPECT_EQ(tensor["rank_shape"].size(), tensor["shape"].size());
  }
}

}  // namespace
}  // namespace assay
