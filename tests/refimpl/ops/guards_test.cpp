// What does not fit is refused before anything is computed: a wrong call is an Error, never memory of others.
#include <gtest/gtest.h>

#include <vector>

#include "core/system/error.h"
#include "refimpl/ops/reference.h"

namespace assay {
namespace {

class Guards : public testing::Test {
 protected:
  Matrix matrix(std::size_t rows, std::size_t columns) {
    return ops.upload(std::vector<double>(rows * columns, 0.5), rows, columns);
  }
  ReferenceOps ops{{Precision::f32}, 1};
};

TEST_F(Guards, OfAGate) {
  const Matrix logits = matrix(2, 6);
  const GateRule fits = {.top_k = 6, .groups = 3, .chosen_groups = 3};
  EXPECT_NO_THROW(ops.moe_gate(logits, {}, fits));
  for (const auto change : std::vector<void (*)(GateRule&)>{
           [](GateRule& rule) { rule.top_k = 0; }, [](GateRule& rule) { rule.top_k = 7; },
           [](GateRule& rule) { rule.groups = 0; }, [](GateRule& rule) { rule.groups = 4; },
           [](GateRule& rule) { rule.chosen_groups = 4; }}) {
    GateRule rule = fits;
    change(rule);
    EXPECT_THROW(ops.moe_gate(logits, {}, rule), Error);
  }
}

TEST_F(Guards, OfAttention) {
  const Matrix keys = matrix(3, 4);
  const AttentionCall fits = {.q = matrix(2, 8),
                              .sequences = {{0, 2, 3, {.base = keys}, {.base = keys}}},
                              .heads = 4,
                              .kv_heads = 2,
                              .qk_dim = 2,
                              .v_dim = 2};
  EXPECT_NO_THROW(ops.attention(fits));
  for (const auto change : std::vector<void (*)(AttentionCall&)>{
           [](AttentionCall& call) { call.kv_heads = 0; }, [](AttentionCall& call) { call.kv_heads = 3; },
           [](AttentionCall& call) { call.qk_dim = 3; },
           [](AttentionCall& call) { call.sequences[0].keys = 1; }}) {
    AttentionCall call = fits;
    change(call);
    EXPECT_THROW(ops.attention(call), Error);
  }
  AttentionCall all = fits;  // as many queries as keys
  all.sequences[0].keys = 2;
  EXPECT_NO_THROW(ops.attention(all));
}

TEST_F(Guards, OfLatentAttention) {
  MlaCall call = {.q = matrix(2, 11), .heads = 2, .kv_rank = 4, .nope_dim = 3, .rope_dim = 2, .v_dim = 3};
  EXPECT_THROW(ops.mla(call), Error);
}

TEST_F(Guards, OfRope) {
  Matrix x = matrix(2, 12);
  const auto call = [&](std::size_t rows, std::size_t pairs, std::size_t heads, std::size_t offset) {
    ops.rope(x, {.heads = heads,
                 .head_dim = 6,
                 .offset = offset,
                 .cos = matrix(rows, pairs),
                 .sin = matrix(rows, pairs)});
  };
  EXPECT_NO_THROW(call(2, 2, 2, 2));
  EXPECT_NO_THROW(call(2, 3, 2, 0));
  EXPECT_THROW(call(1, 2, 2, 2), Error);
  EXPECT_THROW(call(2, 3, 2, 1), Error);
  EXPECT_THROW(call(2, 2, 1, 2), Error);
}

TEST_F(Guards, OfSumsAndPairs) {
  EXPECT_THROW(ops.add(matrix(2, 3), matrix(3, 3)), Error);
  EXPECT_THROW(ops.add(matrix(2, 3), matrix(2, 2)), Error);
  EXPECT_THROW(ops.concatenate(matrix(2, 3), matrix(3, 3)), Error);
  EXPECT_NO_THROW(ops.concatenate(matrix(2, 3), matrix(2, 2)));
}

TEST_F(Guards, OfPartsOfAMatrix) {
  const Matrix x = matrix(2, 3);
  EXPECT_NO_THROW(x.part(3, 0));
  EXPECT_NO_THROW(x.row_range(2, 0));
  EXPECT_THROW(x.part(4, 0), Error);
  EXPECT_THROW(x.part(1, 3), Error);
  EXPECT_THROW(x.row_range(3, 0), Error);
  EXPECT_THROW(x.row_range(1, 2), Error);
  EXPECT_THROW(x.row<double>(0), Error);
  EXPECT_THROW(x.row<float>(2), Error);
}

}  // namespace
}  // namespace assay
