// Tables of measured times: which kernel they name, which are refused, and that a selection goes by them.
#include "kernels/selection/tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "core/system/error.h"
#include "kernels/harness/made_weight.h"
#include "kernels/registry/calling_ops.h"
#include "kernels/selection/embedded_tunings.h"
#include "kernels/selection/select.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using testing::HasSubstr;

constexpr Arithmetic kBf16{Precision::bf16};

// A product of so many tokens; the numbers are of no consequence.
struct Product {
  MadeWeight weight;
  ReferenceOps ops{kBf16, 1};
  LinearCall call;
  Product(std::string_view form, std::size_t tokens, std::size_t inputs, std::size_t outputs)
      : weight(weight_form(form), InputKind::zero_mean, {.rows = outputs, .columns = inputs}),
        call{ops.allocate(tokens, inputs), weight.view(), {}, {}} {}
};

TunedProduct tuned(std::uint64_t tokens, std::uint64_t inputs, std::uint64_t outputs, std::string kernel) {
  return {.form = "BF16",
          .precision = "bf16",
          .tokens = tokens,
          .inputs = inputs,
          .outputs = outputs,
          .kernel = std::move(kernel)};
}

std::string error_of(std::string_view json) {
  try {
    parse_tuning(json, "board.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(Tuning, NamesTheKernelThatWasFastestWhereAProductIsMostAlike) {
  const Tuning table = {.device = "a board",
                        .measured = {tuned(1, 64, 64, "cuda.one"), tuned(8, 64, 64, "cuda.eight"),
                                     tuned(1, 64, 512, "cuda.wide"), tuned(1, 512, 64, "cuda.long")}};
  const auto fastest = [&](std::size_t tokens, std::size_t inputs, std::size_t outputs) {
    return std::string(table.fastest(Product("BF16", tokens, inputs, outputs).call, kBf16));
  };
  EXPECT_EQ(fastest(1, 64, 64), "cuda.one");
  EXPECT_EQ(fastest(2, 64, 64), "cuda.one") << "an octave from one, two from eight";
  EXPECT_EQ(fastest(5, 64, 64), "cuda.eight");
  EXPECT_EQ(fastest(4096, 64, 64), "cuda.eight");
  EXPECT_EQ(fastest(1, 64, 256), "cuda.wide");
  EXPECT_EQ(fastest(1, 256, 64), "cuda.long");
  EXPECT_EQ(table.fastest(Product("F32", 1, 64, 64).call, kBf16), "")
      << "of another form nothing was measured";
  EXPECT_EQ(table.fastest(Product("BF16", 1, 64, 64).call, {Precision::f32}), "")
      << "nor in another precision";
}

TEST(Tuning, IsWrittenAsItIsRead) {
  const Tuning table = {.device = "a \"board\"",
                        .measured = {tuned(1, 64, 64, "cuda.one"), tuned(8, 65, 66, "cuda.eight")}};
  const Tuning read = parse_tuning(text_of(table), "board.json");
  EXPECT_EQ(read.device, table.device);
  ASSERT_EQ(read.measured.size(), 2U);
  EXPECT_EQ(read.measured[1].kernel, "cuda.eight");
  EXPECT_EQ(read.measured[1].tokens, 8U);
  EXPECT_EQ(read.measured[1].inputs, 65U);
  EXPECT_EQ(read.measured[1].outputs, 66U);
  EXPECT_EQ(text_of(read), text_of(table));
}

TEST(Tuning, WhatIsNoTableIsRefused) {
  EXPECT_THAT(error_of("{}"), HasSubstr("is no table of 'assay.tuning/1'"));
  EXPECT_THAT(error_of("[]"), HasSubstr("is no table"));
  EXPECT_THAT(error_of(R"({"schema": "assay.tuning/1", "measured": []})"), HasSubstr("has no 'device'"));
  EXPECT_THAT(error_of(R"({"schema": "assay.tuning/1", "device": "x", "measured": {}})"),
              HasSubstr("no list"));
  EXPECT_THAT(error_of(R"({"schema": "assay.tuning/1", "device": "x", "measured": [3]})"),
              HasSubstr("has no 'form'"));
  const std::string row =
      R"({"schema": "assay.tuning/1", "device": "x", "measured": [{"form": "BF16", "kernel": "k",
      "precision": "bf16", "inputs": 1, "outputs": 1, "tokens": )";
  EXPECT_EQ(error_of(row + "1}]}"), "none");
  EXPECT_THAT(error_of(row + "0}]}"), HasSubstr("tokens is 0"));
  EXPECT_THAT(error_of(row + "-1}]}"), HasSubstr("tokens"));
  EXPECT_THAT(error_of(row + "\"1\"}]}"), HasSubstr("tokens"));
}

TEST(Tuning, TablesOfTheProgramNameKernelsThatThereAre) {
  std::set<std::string> kernels;
  for (const Kernel<LinearCall>& kernel : builtin_kernels().of<LinearCall>()) kernels.insert(kernel.name);
  ASSERT_FALSE(embedded_tunings().empty());
  for (const EmbeddedTuning& one : embedded_tunings()) {
    const Tuning table = parse_tuning(one.json, one.file);
    EXPECT_EQ(builtin_tuning(table.device)->measured.size(), table.measured.size());
    EXPECT_GT(table.measured.size(), 100U);
    for (const TunedProduct& p : table.measured) EXPECT_TRUE(kernels.contains(p.kernel)) << p.kernel;
  }
  EXPECT_EQ(builtin_tuning("a board that nobody has"), nullptr);
}

// Two kernels of a device that say which of them ran.
class Selected : public testing::Test {
 protected:
  Selected() {
    add("cuda.first");
    add("cuda.second");
    std::ofstream(file_) << text_of(
        {.device = "a board",
         .measured = {tuned(1, 64, 64, "cuda.second"), tuned(64, 64, 64, "cuda.absent")}});
  }
  void add(const std::string& name) {
    Kernel<LinearCall> kernel;
    kernel.name = name;
    kernel.device = Device::cuda;
    kernel.takes = [](const Arithmetic&, const LinearCall&) { return true; };
    kernel.run = [this, name](Ops& ops, const LinearCall& call) {
      ran_ = name;
      return ops.allocate(call.x.rows(), call.weight.outputs());
    };
    registry_.add(std::move(kernel));
  }
  std::string ran(const std::string& selection, std::size_t tokens) {
    const Product product("BF16", tokens, 64, 64);
    const auto ops = select_kernels(registry_, selection, kBf16, 1, nullptr, [] { return ModelDevice(); });
    ops->run(product.call);
    return ran_;
  }
  std::string tuned_selection() const { return "cuda,tuning=" + file_.string(); }

  test::TempDir folder_;
  std::filesystem::path file_ = folder_.path() / "board.json";
  Registry registry_;
  std::string ran_;
};

TEST_F(Selected, LinearGoesByTheTable) {
  EXPECT_EQ(ran("cuda", 1), "cuda.first");
  EXPECT_EQ(ran(tuned_selection(), 1), "cuda.second");
  EXPECT_EQ(ran(tuned_selection(), 64), "cuda.first") << "a kernel that is not there is no choice";
}

TEST_F(Selected, WhatWasFoundForAProductIsNotAnothers) {
  const Product one("BF16", 1, 64, 64), many("BF16", 64, 64, 64);
  const auto ops =
      select_kernels(registry_, tuned_selection(), kBf16, 1, nullptr, [] { return ModelDevice(); });
  for (int round = 0; round < 2; ++round) {
    ops->run(one.call);
    EXPECT_EQ(ran_, "cuda.second");
    ops->run(many.call);
    EXPECT_EQ(ran_, "cuda.first");
  }
}

TEST_F(Selected, WhoNamesAKernelOrWantsBitsToStayIsNotTuned) {
  EXPECT_THROW(ran(tuned_selection() + ",linear=cuda.first", 1), Error);
  EXPECT_THROW(ran("cuda-invariant,tuning=" + file_.string(), 1), Error);
  EXPECT_EQ(ran("cuda,linear=cuda.first", 1), "cuda.first");
  EXPECT_THROW(ran("reference,tuning=" + file_.string(), 1), Error) << "of what is on no device";
  EXPECT_THROW(ran("cuda,tuning=" + file_.string() + "x", 1), Error) << "no such file";
}

}  // namespace
}  // namespace assay
