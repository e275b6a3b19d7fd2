// Dumps held against each other: limits, layouts, ranks joined, tokens aligned.
#include "kernels/dumps/align.h"
#include "kernels/dumps/limits.h"
#include "tests/kernels/dumps_fixture.h"
#include "tests/support/paths.h"

namespace assay::dumps {
namespace {

TEST_F(Dumps, FirstDivergenceRateAndSeverity) {
  const Arrays ref = made_dump();
  Arrays test = ref;
  for (const char* name : {"layers.2.mlp_out", "layers.2.out", "layers.3.attn_norm", "logits"}) {
    for (std::size_t t = 8; t < kTokens; ++t) test[name].at(t, 5) += 2;
  }
  const DumpComparison found = compare(ref, test);
  ASSERT_NE(found.first_divergence(), nullptr);
  EXPECT_EQ(found.first_divergence()->name, "layers.2.mlp_out");
  const TapResult& result = *found.first_divergence();
  EXPECT_EQ(result.error.rows_over, 4u);
  EXPECT_EQ(result.error.first_row, 8u);
  EXPECT_DOUBLE_EQ(result.share_over(), 4.0 / (kTokens * kHidden));
  EXPECT_NEAR(result.error.measure.max_abs, 2.0, 1e-6);
  EXPECT_EQ(found.count(CaseStatus::failed), 4u);
  for (std::size_t t = 0; t < kTokens; ++t) EXPECT_EQ(found.token_heat[t] > 1, t >= 8) << t;
}

TEST_F(Dumps, TheSameFileProvesNothing) {
  write_dump(folder_ / "ref.safetensors", made_dump());
  EXPECT_NE(compare_with(folder_ / "ref.safetensors").vacuous.find("same file"), std::string::npos);
  fs::create_hard_link(folder_ / "ref.safetensors", folder_ / "link.safetensors");
  EXPECT_FALSE(compare_with(folder_ / "link.safetensors").good());
}

TEST_F(Dumps, NothingInCommonProvesNothing) {
  const DumpComparison found = compare(made_dump(), {{"other", Array{{2, 3}, {1, 2, 3, 4, 5, 6}}}});
  EXPECT_FALSE(found.good());
  EXPECT_NE(found.vacuous.find("map file"), std::string::npos);
}

TEST_F(Dumps, MissingTapsAreToldAndHolesFail) {
  const Arrays ref = made_dump();
  Arrays test = ref;
  for (std::size_t i = 0; i < kLayers; ++i) test.erase("layers." + std::to_string(i) + ".v");
  test["layers.0.extra"] = ref.at("layers.0.q");
  each(test["layers.0.extra"], [](double x) { return 2 * x; });
  DumpComparison found = compare(ref, test);
  EXPECT_TRUE(found.good());
  EXPECT_EQ(found.missing.size(), kLayers);
  EXPECT_EQ(found.extra, std::vector<std::string>{"layers.0.extra"});
  test.erase("layers.2.k");
  found = compare(ref, test);
  EXPECT_FALSE(found.good());
  EXPECT_EQ(found.holes, std::vector<std::string>{"layers.2.k"});
}

// ---- limits

TEST_F(Dumps, PrecisionIsWhatValuesWereRoundedTo) {
  const Arrays ref = made_dump();
  Arrays test = ref;
  for (auto& [name, array] : test)
    each(array,
         [](double x) { return decode(kBF16, encode(kBF16, static_cast<float>(x), Overflow::special)); });
  const DumpComparison found = compare(ref, test);  // BF16 numbers in an F32 file
  EXPECT_EQ(found.precision, ElementType::BF16);
  EXPECT_TRUE(found.good());
  // 24 · (2^-8 + 2^-24 √32) · √(10 · 3)
  EXPECT_NEAR(tap(found, "layers.2.out").limit.element,
              24 * (0x1p-8 + 0x1p-24 * std::sqrt(32)) * std::sqrt(30), 1e-12);
  EXPECT_NEAR(tap(compare(ref, ref), "layers.2.out").limit.element,
              8 * (0x1p-24 + 0x1p-24 * std::sqrt(32)) * std::sqrt(30), 1e-15);
}

// What transformers' own models need (data/make_dump_errors.py) is allowed where they are not deep, and no
// more than that.
TEST(DumpLimits, AreWhatModelsNeed) {
  std::istringstream rows(test::read_file(test::source_dir() / "data/fixtures/dumps/ERRORS.tsv"));
  std::string line;
  std::getline(rows, line);
  std::map<std::string, Growth> most;
  std::size_t counted = 0;
  while (std::getline(rows, line)) {
    std::istringstream row(line);
    std::string model, layers, precision, element, at, norm;
    for (std::string* field : {&model, &layers, &precision, &element, &at, &norm})
      std::getline(row, *field, '\t');
    if (std::stoi(layers) > 8) continue;
    ++counted;
    Growth& needed = most[precision == "f32" ? "single" : "half"];
    needed.element = std::max(needed.element, std::stod(element));
    needed.norm = std::max(needed.norm, std::stod(norm));
  }
  EXPECT_GT(counted, 60u);
  for (const auto& [kind, type] :
       {std::pair{"single", ElementType::F32}, std::pair{"half", ElementType::BF16}}) {
    const Growth allowed = measured_growth(type), needed = most.at(kind);
    EXPECT_LE(needed.element, allowed.element) << kind;
    EXPECT_LE(needed.norm, allowed.norm) << kind;
    EXPECT_GE(needed.element, 0.75 * allowed.element) << kind;
    EXPECT_GE(needed.norm, 0.75 * allowed.norm) << kind;
  }
  EXPECT_EQ(measured_growth(ElementType::F16).element, measured_growth(ElementType::BF16).element);
}

TEST_F(Dumps, DoublesAreComparedAsDoubles) {
  const Arrays ref = made_dump();
  Arrays test = ref;
  test["layers.1.out"].at(2, 2) += 1e-10;
  write_dump(folder_ / "ref.safetensors", ref, ElementType::F64);
  write_dump(folder_ / "test.safetensors", test, ElementType::F64);
  request_.rtol = 1e-12;
  const DumpComparison found = compare_with(folder_ / "test.safetensors");
  EXPECT_EQ(tap(found, "layers.1.out").status, CaseStatus::failed);
  EXPECT_NEAR(tap(found, "layers.1.out").error.measure.max_abs, 1e-10, 1e-15);
  EXPECT_EQ(found.count(CaseStatus::failed), 1u);
}

TEST_F(Dumps, YardstickAllowsTwiceThePlainError) {
  const Arrays ref = made_dump();
  Arrays plain = ref, good = ref, bad = ref;
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> noise(-1e-3, 1e-3);
  for (auto& [name, array] : plain) each(array, [&](double x) { return x * (1 + noise(random)); });
  for (auto& [name, array] : good) each(array, [&](double x) { return x * (1 + 1.5 * noise(random)); });
  for (auto& [name, array] : bad) each(array, [&](double x) { return x * (1 + 3 * noise(random)); });
  write_dump(folder_ / "plain.safetensors", plain);
  request_.yardstick = folder_ / "plain.safetensors";
  EXPECT_TRUE(compare(ref, good).good());
  EXPECT_EQ(compare(ref, bad).count(CaseStatus::passed), 0u);
}

// ---- layouts and maps

TEST_F(Dumps, AxesAreFoundFromShapes) {
  const Arrays ref = made_dump();
  Arrays test = ref;
  for (auto& [name, array] : test) array.shape.insert(array.shape.begin(), 1);
  test["layers.0.q"].shape = {1, kTokens, kHeads, kHidden / kHeads};
  Array& k = test["layers.0.k"];  // [1, heads, tokens, dim]
  const std::size_t head = kHidden / kHeads;
  for (std::size_t t = 0; t < kTokens; ++t) {
    for (std::size_t j = 0; j < kHidden; ++j)
      k.values[(j / head * kTokens + t) * head + j % head] = ref.at("layers.0.k").values[t * kHidden + j];
  }
  k.shape = {1, kHeads, kTokens, head};
  const DumpComparison found = compare(ref, test);
  EXPECT_TRUE(found.good());
  EXPECT_NE(tap(found, "layers.0.k").note.find("[heads, tokens, dim]"), std::string::npos);
}

TEST_F(Dumps, MapsNameTransposeScaleAndTurn) {
  const Arrays ref = made_dump();
  Arrays test;
  for (const auto& [name, array] : ref) test["model." + name] = array;
  test["model.rotary_emb"] = Array{{2, 2}, {1, 2, 3, 4}};
  test["model.layers.0.v"] = transposed(ref.at("layers.0.v"));
  each(test["model.logits"], [](double x) { return x * 4; });
  test["model.layers.1.q"] =
      columns(ref.at("layers.1.q"), [](std::size_t j) { return j / 8 * 8 + j % 8 / 2 + j % 2 * 4; });
  const std::string text =
      "# names\n^model\\. ->\nrotary_emb -> -\n^layers\\.0\\.v$ { transpose=1,0 }\n^logits$ { scale=0.25 }\n"
      "layers\\.1\\.q$ { rope=pairs-to-halves:8 }\n";
  EXPECT_TRUE(compare(ref, test, text).good());
  const std::string json =
      R"({"test": [{"match": "^model\\.", "to": ""}, {"match": "rotary_emb", "to": "-"}, {"match": "^layers\\.0\\.v$", "transpose": [1, 0]},)"
      R"({"match": "^logits$", "scale": 0.25}, {"match": "layers\\.1\\.q$", "rope": "pairs-to-halves:8"}]})";
  const DumpComparison found = compare(ref, test, json);
  EXPECT_TRUE(found.good());
  EXPECT_EQ(found.taps.size(), ref.size());
}

TEST_F(Dumps, BadMapsAreOneLine) {
  for (const auto& [map, reason] :
       std::vector<std::pair<std::string, std::string>>{{"a( -> b", "regular expression"},
                                                        {"a { axes=batch,head }", "token"},
                                                        {"a { join=cat }", "same, sum, concat"},
                                                        {"a { rope=pairs-to-halves:7 }", "even width"},
                                                        {"a { scale=x }", "number"},
                                                        {"a { colour=red }", "colour"},
                                                        {"a { transpose=0,0 }", "once"},
                                                        {"layers.0 = layers.1", "changes nothing"},
                                                        {"a {}", "changes nothing"},
                                                        {"[{\"match\": \"a\"}]", "changes nothing"},
                                                        {"{\"rules\": []}", "neither"},
                                                        {"[{\"to\": \"b\"}]", "match"},
                                                        {"layers.* -> x", "two tensors so"}}) {
    try {
      compare(made_dump(), made_dump(), map);
      ADD_FAILURE() << map;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      EXPECT_NE(error.line().find(reason), std::string::npos) << error.line();
    }
  }
}

// ---- ranks, stages and steps

Array part(const Array& whole, std::size_t axis, std::size_t first, std::size_t count) {
  Array out = {whole.shape, {}};
  out.shape[axis] = count;
  const std::size_t width = whole.shape[1];
  for (std::size_t i = 0; i < whole.shape[0]; ++i) {
    for (std::size_t j = 0; j < width; ++j) {
      const std::size_t at = axis == 0 ? i : j;
      if (at >= first && at < first + count) out.values.push_back(whole.values[i * width + j]);
    }
  }
  return out;
}

TEST_F(Dumps, RanksStagesAndStepsAreJoined) {
  const Arrays ref = made_dump();
  write_dump(folder_ / "ref.safetensors", ref);
  // Two stages of two ranks, prompts in chunks of 5 and 7 tokens: q, k, v and logits by columns, attn_out as
  // partial sums, the rest copied.
  for (std::size_t rank = 0; rank < 2; ++rank) {
    for (std::size_t step = 0; step < 2; ++step) {
      Arrays stage[2];
      for (const auto& [name, array] : ref) {
        const bool second = name == "logits" || name == "final_norm" || name.find("layers.2") == 0 ||
                            name.find("layers.3") == 0;
        Array mine = part(array, 0, step * 5, step == 0 ? 5 : 7);
        const std::string last = name.substr(name.rfind('.') + 1);
        if (last == "q" || last == "k" || last == "v" || last == "logits")
          mine = part(mine, 1, rank * array.shape[1] / 2, array.shape[1] / 2);
        if (last == "attn_out") each(mine, [&](double x) { return rank == 0 ? 0.25 * x : 0.75 * x; });
        stage[second ? 1 : 0][name] = mine;
      }
      for (std::size_t pp = 0; pp < 2; ++pp) {
        const std::string place = "TP" + std::to_string(rank) + "_PP" + std::to_string(pp) + "_Rank" +
                                  std::to_string(2 * pp + rank) + "_pid7";
        write_dump(folder_ / "ranks" / place / ("Pass0000" + std::to_string(step) + ".safetensors"),
                   stage[pp]);
      }
    }
  }
  const DumpComparison found = compare_with(folder_ / "ranks", "attn_out$ { join=sum }\n");
  EXPECT_TRUE(found.good()) << (found.first_divergence()
                                    ? found.first_divergence()->name + code(*found.first_divergence())
                                    : "");
  EXPECT_EQ(found.taps.size(), ref.size());
  EXPECT_NE(tap(found, "layers.3.q").note.find("joined along axis 1"), std::string::npos)
      << tap(found, "layers.3.q").note;
  EXPECT_NE(tap(found, "layers.3.attn_out").note.find("summed"), std::string::npos);
  EXPECT_NE(tap(found, "embed").note.find("hold the same"), std::string::npos);
  // Without the rule the two ranks' halves of the sum are ranks that differ.
  const DumpComparison without = compare_with(folder_ / "ranks");
  EXPECT_EQ(code(tap(without, "layers.3.attn_out")), "unusable");
  EXPECT_NE(tap(without, "layers.3.attn_out").diagnosis->detail.find("different numbers"), std::string::npos);
  EXPECT_EQ(without.count(CaseStatus::failed), kLayers);
}

TEST_F(Dumps, OneArrayAFileNestedOrPaired) {
  const Arrays ref = made_dump();
  write_dump(folder_ / "ref.safetensors", ref);
  std::size_t index = 0;
  for (const auto& [name, array] : ref) {
    std::string nested = name;
    std::replace(nested.begin(), nested.end(), '.', '/');
    write_npy(folder_ / "nested" / (nested + ".npy"), array);
    const std::size_t dot = name.rfind('.');
    const std::string pairs = "step=0___rank=0___dump_index=" + std::to_string(++index) +
                              "___name=" + name.substr(dot + 1) +
                              (dot == std::string::npos ? "" : "___layer_id=" + name.substr(7, 1));
    write_npy(folder_ / "pairs" / "dump_17" / (pairs + ".npy"), array);
  }
  EXPECT_TRUE(compare_with(folder_ / "nested").good());
  const DumpComparison pairs = compare_with(folder_ / "pairs");
  EXPECT_TRUE(pairs.good());
  EXPECT_EQ(pairs.taps.size(), ref.size());
}

TEST_F(Dumps, PicklesAreRefusedWithARemedy) {
  write_dump(folder_ / "ref.safetensors", made_dump());
  test::write_file(folder_ / "pickles" / "Pass00000.pt", "PK");
  for (const fs::path& path : {folder_ / "pickles", folder_ / "pickles" / "Pass00000.pt"}) {
    try {
      compare_with(path);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_NE(error.line().find("from .pt"), std::string::npos) << error.line();
    }
  }
}

// ---- tokens

// Rows of `in` and rows of noise (-1) in the order given.
Array picked(const Array& in, const std::vector<int>& order) {
  std::mt19937_64 random(99);
  Array out = made(random, order.size(), in.shape[1]);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] >= 0)
      std::copy_n(in.values.begin() + order[i] * static_cast<std::ptrdiff_t>(in.shape[1]), in.shape[1],
                  out.values.begin() + static_cast<std::ptrdiff_t>(i * in.shape[1]));
  }
  return out;
}

TEST_F(Dumps, TokensAreAligned) {
  const Arrays ref = made_dump();
  for (const std::vector<int>& order : std::vector<std::vector<int>>{
           {-1, -1, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},      // padding on the left
           {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -1, -1},          // and on the right
           {6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5},                  // another order of sequences
           {-1, 6, 7, 8, 9, 10, 11, -1, -1, 0, 1, 2, 3, 4, 5, -1},  // both
           {0, 1, 2, 3, 4, 5, 6}}) {                                // the beginning alone
    Arrays test;
    for (const auto& [name, array] : ref) test[name] = picked(array, order);
    DumpComparison found = compare(ref, test);
    EXPECT_TRUE(found.good()) << order.size() << " " << (found.notes.empty() ? "" : found.notes.front());
    ASSERT_FALSE(found.notes.empty());
    EXPECT_NE(found.notes.front().find("by embed"), std::string::npos);
    // A fault is still told, of the right token.
    const auto sixth = static_cast<std::size_t>(std::find(order.begin(), order.end(), 6) - order.begin());
    test["layers.1.out"].at(sixth, 3) += 1;
    found = compare(ref, test);
    EXPECT_EQ(tap(found, "layers.1.out").error.first_row, 6u);
    EXPECT_EQ(found.count(CaseStatus::failed), 1u);
  }
}

TEST_F(Dumps, LogitsOfTheLastTokenAlone) {
  const Arrays ref = made_dump();
  Arrays test = ref;
  test["logits"] = picked(ref.at("logits"), {static_cast<int>(kTokens) - 1});
  EXPECT_TRUE(compare(ref, test).good());
  test["logits"] = picked(ref.at("logits"), {3});
  EXPECT_FALSE(compare(ref, test).good());
}

TEST(Align, TakesTheLongestRunsFirst) {
  const std::vector<std::uint64_t> ref = {1, 2, 1, 2, 3, 1, 2, 9}, test = {0, 1, 2, 9, 0, 1, 2, 1, 2, 3};
  const auto map = align(ref, test);
  ASSERT_TRUE(map);
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> expected = {{0, 5}, {1, 6}, {2, 7}, {3, 8},
                                                                         {4, 9}, {5, 1}, {6, 2}, {7, 3}};
  EXPECT_EQ(map->pairs, expected);
  EXPECT_FALSE(align(ref, std::vector<std::uint64_t>{1, 2, 1, 2, 3, 1, 2, 8}));
  EXPECT_TRUE(align(ref, ref)->identity);
}

// ---- order of names

TEST(DumpNames, ForwardOrder) {
  const std::vector<std::string> ordered = {"embed",
                                            "layers.0.attn_norm",
                                            "layers.0.q_proj",
                                            "layers.0.q",
                                            "layers.0.attn_out",
                                            "layers.0.mlp_norm",
                                            "layers.0.out",
                                            "layers.2.out",
                                            "layers.10.attn_norm",
                                            "final_norm",
                                            "logits"};
  for (std::size_t i = 1; i < ordered.size(); ++i)
    EXPECT_LT(forward_key(ordered[i - 1]), forward_key(ordered[i])) << ordered[i];
  EXPECT_LT(forward_key("model.layers.3.mlp"), forward_key("model.layers.3"));
  EXPECT_LT(forward_key("attn_norm-3"), forward_key("l_out-3"));
  EXPECT_EQ(layer_of("l_out-3"), 3u);
  EXPECT_EQ(layer_of("transformer.h.5.ln_1"), 5u);
  EXPECT_EQ(layer_of("ln_1"), std::nullopt);
  EXPECT_EQ(kind_of("layers.12.out"), "layers.*.out");
}

TEST(DumpNames, Places) {
  const ParsedName a = parse_path("TP1_PP0_Rank1_pid99/Pass00012");
  EXPECT_EQ(a.name, "");
  EXPECT_EQ(describe(a.place), "step 12, pp 0, tp 1, rank 1");
  const ParsedName b = parse_path("run/step_3/rank_0_of_8/layers/4/out");
  EXPECT_EQ(b.name, "run.layers.4.out");
  EXPECT_EQ(describe(b.place), "step 3, rank 0");
  EXPECT_EQ(parse_path("layer_3/step").name, "layer_3.step");
  EXPECT_EQ(describe(parse_tensor_name("tp1/layers.0.q").place), "tp 1");
  EXPECT_EQ(parse_tensor_name("tp1/layers.0.q").name, "layers.0.q");
}

}  // namespace
}  // namespace assay::dumps
