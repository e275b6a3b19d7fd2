// Every fault that is planted in a dump is found, and called by its name.
#include "tests/kernels/dumps_fixture.h"

namespace assay::dumps {
namespace {

struct Fault {
  std::string name;
  std::function<void(Arrays&)> plant;
  std::string at;  // the tap that it is told of
  CaseStatus status = CaseStatus::failed;
  std::string code;
};

std::vector<Fault> faults() {
  const std::string q = "layers.1.q", out = "layers.2.out";
  const std::size_t head = kHidden / kHeads;
  const auto no = CaseStatus::mistrusted;
  return {
      {"zeros", [=](Arrays& d) { each(d[out], [](double) { return 0.0; }); }, out, no, "all_zero"},
      {"constant", [=](Arrays& d) { each(d[out], [](double) { return 3.5; }); }, out, no, "constant"},
      {"NaN", [=](Arrays& d) { each(d[out], [](double) { return std::nan(""); }); }, out, no, "not_numbers"},
      {"one NaN", [=](Arrays& d) { d[out].at(3, 4) = std::nan(""); }, out, CaseStatus::failed, "elements"},
      {"one element", [=](Arrays& d) { d[out].at(3, 4) += 2; }, out, CaseStatus::failed, "elements"},
      {"three elements",
       [=](Arrays& d) {
         for (const std::size_t i : {1, 5, 9}) d[q].at(i, 3 * i) += 3;
       },
       q, CaseStatus::failed, "elements"},
      {"swapped", [=](Arrays& d) { std::swap(d[q], d["layers.1.k"]); }, q, no, "swapped"},
      {"swapped, the other", [=](Arrays& d) { std::swap(d[q], d["layers.1.k"]); }, "layers.1.k", no,
       "swapped"},
      {"no rope",
       [=](Arrays& d) {
         d[q] = d["layers.1.q_proj"];
         each(d[q], [](double x) { return x * (1 + 1e-7); });
       },
       q, no, "mistagged"},
      {"a buffer kept", [=](Arrays& d) { d["layers.1.attn_out"] = d["layers.1.mlp_out"]; },
       "layers.1.attn_out", no, "aliased"},
      {"layers off",
       [](Arrays& d) {
         for (std::size_t i = kLayers; i-- > 1;)
           d["layers." + std::to_string(i) + ".out"] = d["layers." + std::to_string(i - 1) + ".out"];
         d["layers.0.out"] = d["embed"];
       },
       out, no, "layers_off"},
      {"layers off, the first",
       [](Arrays& d) {
         for (std::size_t i = kLayers; i-- > 1;)
           d["layers." + std::to_string(i) + ".out"] = d["layers." + std::to_string(i - 1) + ".out"];
         d["layers.0.out"] = d["embed"];
       },
       "layers.0.out", no, "layers_off"},
      {"scaled", [=](Arrays& d) { each(d[out], [](double x) { return x * 1.0625; }); }, out,
       CaseStatus::failed, "scaled"},
      {"sign", [=](Arrays& d) { each(d[out], [](double x) { return -x; }); }, out, CaseStatus::failed,
       "scaled"},
      {"offset", [=](Arrays& d) { each(d[out], [](double x) { return x + 0.75; }); }, out, CaseStatus::failed,
       "offset"},
      {"by column",
       [=](Arrays& d) {
         for (std::size_t i = 0; i < kTokens; ++i)
           for (std::size_t j = 0; j < kHidden; ++j) d[out].at(i, j) *= 1 + 0.1 * static_cast<double>(j % 7);
       },
       out, CaseStatus::failed, "scaled_by_column"},
      {"by token",
       [=](Arrays& d) {
         for (std::size_t i = 0; i < kTokens; ++i)
           for (std::size_t j = 0; j < kHidden; ++j) d[out].at(i, j) *= 1 + 0.1 * static_cast<double>(i % 5);
       },
       out, CaseStatus::failed, "scaled_by_token"},
      {"shifted", [=](Arrays& d) { d[out] = rows(d[out], [](std::size_t i) { return i == 0 ? 0 : i - 1; }); },
       out, CaseStatus::failed, "shifted"},
      {"shifted back",
       [=](Arrays& d) { d[out] = rows(d[out], [](std::size_t i) { return std::min(i + 1, kTokens - 1); }); },
       out, CaseStatus::failed, "shifted"},
      {"tokens mixed",
       [=](Arrays& d) { d[out] = rows(d[out], [](std::size_t i) { return i * 5 % kTokens; }); }, out,
       CaseStatus::failed, "tokens_permuted"},
      {"tokens missing",
       [=](Arrays& d) {
         for (std::size_t j = 0; j < kHidden; ++j) d[out].at(7, j) = d[out].at(9, j) = 0;
       },
       out, CaseStatus::failed, "tokens_zero"},
      {"columns missing",
       [=](Arrays& d) {
         for (std::size_t i = 0; i < kTokens; ++i)
           for (std::size_t j = 16; j < 24; ++j) d[out].at(i, j) = 0;
       },
       out, CaseStatus::failed, "columns_zero"},
      {"transposed", [=](Arrays& d) { d[out] = transposed(d[out]); }, out, CaseStatus::failed, "transposed"},
      {"transposed, shape kept",
       [=](Arrays& d) {
         auto t = transposed(d[out]);
         t.shape = d[out].shape;
         d[out] = t;
       },
       out, CaseStatus::failed, "transposed"},
      {"heads before tokens",
       [=](Arrays& d) {
         Array a = d[q];
         for (std::size_t t = 0; t < kTokens; ++t)
           for (std::size_t j = 0; j < kHidden; ++j)
             a.values[(j / head * kTokens + t) * head + j % head] = d[q].at(t, j);
         d[q] = a;
       },
       q, CaseStatus::failed, "heads_before_tokens"},
      {"[dim, heads]",
       [=](Arrays& d) {
         d[q] = columns(d[q], [=](std::size_t j) { return j % kHeads * head + j / kHeads; });
       },
       q, CaseStatus::failed, "heads_transposed"},
      {"heads in another order",
       [=](Arrays& d) {
         d[q] = columns(d[q], [=](std::size_t j) { return (kHeads - 1 - j / head) * head + j % head; });
       },
       q, CaseStatus::failed, "heads_permuted"},
      {"pairs",
       [=](Arrays& d) {
         d[q] = columns(d[q],
                        [=](std::size_t j) { return j / head * head + j % head / 2 + j % 2 * (head / 2); });
       },
       q, CaseStatus::failed, "rope_pairs"},
      {"halves",
       [=](Arrays& d) {
         d[q] = columns(d[q], [=](std::size_t j) {
           const std::size_t k = j % head;
           return j - k + (k < head / 2 ? 2 * k : 2 * k - head + 1);
         });
       },
       q, CaseStatus::failed, "rope_halves"},
      {"pairs in a part",
       [=](Arrays& d) {
         d[q] = columns(d[q], [](std::size_t j) {
           const std::size_t k = j % 16;
           return k < 8 ? j : j - k + 8 + (k - 8) / 2 + k % 2 * 4;
         });
       },
       q, CaseStatus::failed, "rope_pairs"},
      {"angles",
       [=](Arrays& d) {
         const Array a = d[q];
         for (std::size_t i = 0; i < kTokens; ++i)
           for (std::size_t j = 0; j < kHidden; ++j) {
             const std::size_t k = j % head, half = head / 2;
             if (k >= half) continue;
             const double angle = 0.3 + 0.1 * static_cast<double>(i * k), x = a.values[i * kHidden + j],
                          y = a.values[i * kHidden + j + half];
             d[q].at(i, j) = x * std::cos(angle) - y * std::sin(angle);
             d[q].at(i, j + half) = x * std::sin(angle) + y * std::cos(angle);
           }
       },
       q, CaseStatus::failed, "rope_angles"},
      {"a rank's part",
       [=](Arrays& d) {
         Array a = {{kTokens, 16}, {}};
         for (std::size_t i = 0; i < kTokens; ++i)
           for (std::size_t j = 16; j < 32; ++j) a.values.push_back(d[q].at(i, j));
         d[q] = a;
       },
       q, CaseStatus::failed, "one_part"},
      {"heads repeated",
       [=](Arrays& d) {
         Array a = {{kTokens, 2 * kHidden}, {}};
         for (std::size_t i = 0; i < kTokens; ++i)
           for (std::size_t j = 0; j < 2 * kHidden; ++j)
             a.values.push_back(d[q].at(i, j / (2 * head) * head + j % head));
         d[q] = a;
       },
       q, CaseStatus::failed, "heads_repeated"},
      {"rounded",
       [=](Arrays& d) {
         each(d[out], [](double x) {
           return decode(kBF16, encode(kBF16, static_cast<float>(x), Overflow::special));
         });
       },
       out, CaseStatus::failed, "rounded"},
      {"another size",
       [=](Arrays& d) {
         d[out] = Array{{kTokens, 31}, std::vector<double>(kTokens * 31, 0.5)};
       },
       out, CaseStatus::failed, "shape"}};
}

TEST_F(Dumps, EveryFaultIsNamed) {
  const Arrays ref = made_dump();
  ASSERT_TRUE(compare(ref, ref).good());
  for (const Fault& fault : faults()) {
    Arrays test = ref;
    fault.plant(test);
    const DumpComparison found = compare(ref, test);
    const TapResult& result = tap(found, fault.at);
    EXPECT_FALSE(found.good()) << fault.name;
    EXPECT_EQ(result.status, fault.status) << fault.name << ": " << code(result);
    EXPECT_EQ(code(result), fault.code)
        << fault.name << ": " << (result.diagnosis ? result.diagnosis->detail : "");
  }
}

// Wherever it stands, however little it is off: in a long dump also in tokens that no hypothesis is tried on.
TEST_F(Dumps, OneElementIsNamed) {
  for (const std::size_t tokens : {kTokens, std::size_t{100}}) {
    const Arrays ref = made_dump(tokens);
    std::mt19937_64 random(5);
    for (int n = 0; n < 60; ++n) {
      const std::size_t i = random() % tokens, j = random() % kHidden;
      const double off = (random() % 2 == 0 ? 1 : -1) * std::pow(10, -static_cast<double>(random() % 4));
      Arrays test = ref;
      test["layers.1.q"].at(i, j) += off;
      const TapResult result = tap(compare(ref, test), "layers.1.q");
      ASSERT_EQ(result.status, CaseStatus::failed);
      ASSERT_EQ(code(result), "elements") << off << " at " << i << ", " << j;
      EXPECT_NE(result.diagnosis->detail.find("1 of " + std::to_string(tokens * kHidden) +
                                              " elements is off: token " + std::to_string(i) + ", column " +
                                              std::to_string(j) + " ("),
                std::string::npos)
          << result.diagnosis->detail;
    }
  }
}

TEST_F(Dumps, OtherExpertsAreCounted) {
  Arrays ref = made_dump();
  Array& weights = ref["layers.1.router_weights"] = Array{{kTokens, 8}, std::vector<double>(kTokens * 8)};
  for (std::size_t t = 0; t < kTokens; ++t) {
    weights.at(t, t % 8) = 0.7;
    weights.at(t, (t + 3) % 8) = 0.3;
  }
  Arrays test = ref;
  std::swap(test["layers.1.router_weights"].at(4, 7), test["layers.1.router_weights"].at(4, 0));
  std::swap(test["layers.1.router_weights"].at(9, 4), test["layers.1.router_weights"].at(9, 5));
  const DumpComparison found = compare(ref, test);
  const TapResult& result = tap(found, "layers.1.router_weights");
  EXPECT_EQ(code(result), "other_experts");
  EXPECT_NE(result.diagnosis->detail.find("2 of 12 tokens, the first of them token 4"), std::string::npos)
      << result.diagnosis->detail;
}

// The same faults under the noise of 16 bits, against a better REF.
TEST_F(Dumps, FaultsAreNamedUnderNoise) {
  const Arrays ref = made_dump();
  write_dump(folder_ / "ref.safetensors", ref);
  for (const Fault& fault : faults()) {
    if (fault.code == "rounded" || fault.code.empty() || fault.code == "aliased") continue;
    if (fault.name == "no rope") continue;  // rounded, it repeats q_proj to the bit: "aliased"
    Arrays test = ref;
    fault.plant(test);
    write_dump(folder_ / "test.safetensors", test, ElementType::BF16);
    const DumpComparison found = compare_with(folder_ / "test.safetensors");
    EXPECT_EQ(found.precision, ElementType::BF16);
    const TapResult& result = tap(found, fault.at);
    EXPECT_EQ(result.status, fault.status) << fault.name << ": " << code(result);
    EXPECT_EQ(code(result), fault.code)
        << fault.name << ": " << (result.diagnosis ? result.diagnosis->detail : "");
  }
}

}  // namespace
}  // namespace assay::dumps
