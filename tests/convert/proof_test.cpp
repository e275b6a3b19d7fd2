// The certificate of a re-blocking: of what it made it holds, and of whatever was changed behind its back it does not.
#include "convert/proof.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "convert/convert.h"
#include "convert/same_bytes.h"
#include "core/formats/stream_digest.h"
#include "core/system/error.h"
#include "tests/convert/convert_support.h"

namespace assay {
namespace {

using test::TempDir;
using test::TensorBytes;

// Two FP8 matrices of 4 x 6 under scales of 2 x 3, and norms between.
std::vector<TensorBytes> small_model(char first_code = '\x38') {
  std::string codes(24, '\x38');
  for (std::size_t i = 1; i < codes.size(); ++i) codes[i] = static_cast<char>(0x20 + i);
  codes[0] = first_code;
  const std::vector<float> scales = {0.5F, 0.25F, 2, 1};
  return {{"a.weight", ElementType::F8_E4M3, {4, 6}, codes},
          {"a.weight_scale_inv", ElementType::F32, {2, 2}, test::float32_bytes(scales)},
          {"norm.weight", ElementType::BF16, {37}, std::string(74, '\x3f')},
          {"z.weight", ElementType::F8_E4M3, {4, 6}, std::string(24, '\xb0')},
          {"z.weight_scale_inv", ElementType::F32, {2, 2}, test::float32_bytes(scales)}};
}
constexpr const char* kConfig = R"({"quantization_config":{"quant_method":"fp8","weight_block_size":[2,3]}})";

struct Reblocked {
  explicit Reblocked(const std::vector<TensorBytes>& model) {
    test::write_checkpoint(dir / "in", model, kConfig);
    options.to = "reblock=1x1";
    plan = make_plan(dir / "in", options);
    result = convert(dir / "out", plan, options, ProgressMode::never);
  }
  Proof again() {
    Progress progress(ProgressMode::never, "", 1);
    return prove(plan, options, CheckpointReader(plan.checkpoint), dir / "out", progress);
  }
  // The byte at `place` of a tensor of the output is another from now on.
  void damage(const std::string& tensor, std::size_t place) {
    const Checkpoint made = open_checkpoint(dir / "out", 1);
    const CheckpointTensor& stored = *made.find(tensor);
    const fs::path path = made.files[stored.file].path;
    std::string bytes = test::read_file(path);
    bytes[stored.offset + place] ^= 1;
    test::write_file(path, bytes);
  }
  TempDir dir;
  ConvertOptions options;
  ConversionPlan plan;
  ConvertResult result;
};

TEST(Proof, HoldsOfWhatWasMade) {
  Reblocked made(small_model());
  ASSERT_TRUE(made.result.proof);
  EXPECT_TRUE(made.result.proof->holds());
  EXPECT_EQ(made.result.proof->tensors, 3U);  // the codes and the norm
  EXPECT_EQ(made.result.proof->scales, 48U);
  EXPECT_EQ(made.result.proof->values, 48U);
  // The digest over the digests of what only moved, in the order of the source.
  StreamDigest all(DigestKind::sha256, 96);
  for (const std::size_t kept : {0, 2, 3}) {
    const std::string bytes = small_model()[kept].bytes;
    const Digest digest = digest_of(DigestKind::sha256, std::as_bytes(std::span(bytes)));
    all.update(std::as_bytes(std::span(digest.bytes)));
  }
  EXPECT_EQ(made.result.proof->before, all.finish());
  EXPECT_EQ(made.again().after, made.result.proof->after);
}

TEST(Proof, FindsWhatChanged) {
  const std::pair<const char*, const char*> cases[] = {
      {"a.weight", "a.weight: its stored bytes changed"},
      {"norm.weight", "norm.weight: its stored bytes changed"},
      {"z.weight_scale_inv", "z.weight: scale [0, 2] is not that of its block"}};
  for (const auto& [tensor, told] : cases) {
    Reblocked made(small_model());
    made.damage(tensor, 9);
    const Proof proof = made.again();
    EXPECT_FALSE(proof.holds()) << tensor;
    ASSERT_FALSE(proof.faults.empty()) << tensor;
    EXPECT_EQ(proof.faults[0], told);  // of codes their values follow
  }
}

TEST(Proof, FindsABlockSizeThatIsAnothers) {
  Reblocked made(small_model());
  test::write_file(made.dir / "out/config.json", kConfig);
  EXPECT_THROW(made.again(), Error);  // which scales they are cannot be told any more
}

// Codes and scales are where they should be, and what they mean is no number.
TEST(Proof, FindsWhatIsNoNumber) {
  const Reblocked nan(small_model('\xff'));
  ASSERT_TRUE(nan.result.proof);
  EXPECT_FALSE(nan.result.proof->holds());
  auto model = small_model();
  model[1].bytes = test::float32_bytes(std::vector<float>{3e38F, 1, 1, 1});  // 448 of them are infinite
  model[0].bytes[2] = '\x7e';
  const Reblocked overflow(model);
  ASSERT_TRUE(overflow.result.proof);
  EXPECT_FALSE(overflow.result.proof->holds());
}

// As a conversion has it read on the way, of what then lies in OUT.
EarlyReads read_early(const Reblocked& made) {
  const CheckpointReader source(made.plan.checkpoint);
  EarlyReading early(made.plan, source, 2);
  for (const OutputShard& shard : made.plan.shards)
    early.add(shard, std::make_shared<const File>(File::open(made.dir / "out" / shard.name)));
  return early.finish();
}

TEST(EarlyReading, IsTakenForTheTensorsThatLieWhereTheyWereRead) {
  Reblocked made(small_model());
  EarlyReads reads = read_early(made);
  ASSERT_EQ(reads.size(), 3U);  // no scales, which are not the source's
  Progress progress(ProgressMode::never, "", 1);
  const CheckpointReader source(made.plan.checkpoint);
  const auto proof = [&] {
    return prove(made.plan, made.options, source, made.dir / "out", progress, reads);
  };
  EXPECT_TRUE(proof().holds());
  EXPECT_EQ(proof().before, made.result.proof->before);
  reads.begin()->second.read.after = {};
  EXPECT_FALSE(proof().holds());
  ++reads.begin()->second.offset;  // of another place: it is read
  EXPECT_TRUE(proof().holds());
  made.damage("norm.weight", 3);  // after it was read, which a proof without it would find
  EXPECT_TRUE(proof().holds());
  reads = read_early(made);
  EXPECT_FALSE(proof().holds());
}

TEST(ReadingTwice, LeavesWhatIsNotAskedFor) {
  const std::string bytes(1 << 20, 'x');
  const auto read = [&](std::uint64_t at, std::span<std::byte> out) {
    std::memcpy(out.data(), &bytes[at], out.size());
  };
  std::vector<ReadTwice> results(100);
  ReadingTwice reading(2);
  for (ReadTwice& result : results)
    reading.add({.bytes = bytes.size(), .before = read, .after = read}, result);
}

// Pairs of many lengths, some with a byte that differs.
TEST(ReadTwice, TellsWhatIsTheSame) {
  std::mt19937_64 random(7);
  const std::size_t lengths[] = {0, 1, 63, 64, 65, 4096, 65535, 65536, 65537, 200'001, 131'072, 7};
  std::vector<std::string> before, after;
  std::vector<StoredTwice> pairs;
  for (const bool differs : {false, true}) {
    for (const std::size_t length : lengths) {
      before.emplace_back(length, '\0');
      for (char& c : before.back()) c = static_cast<char>(random() % 0x7c);
      after.push_back(before.back());
      if (differs && length > 0) after.back()[random() % length] ^= '\x40';
    }
  }
  const auto reads = [](const std::string& bytes) {
    return [&bytes](std::uint64_t at, std::span<std::byte> out) {
      std::memcpy(out.data(), &bytes[at], out.size());
    };
  };
  for (std::size_t i = 0; i < before.size(); ++i)
    pairs.push_back({.bytes = before[i].size(),
                     .before = reads(before[i]),
                     .after = reads(after[i]),
                     .first_non_finite = 0x7c});
  const std::set<std::size_t> infinite = {1, 3, 4, 9};
  for (const std::size_t i : infinite) before[i].back() = after[i].back() = '\xfc';  // in E5M2, negative
  for (const int jobs : {1, 3}) {
    Progress progress(ProgressMode::never, "", 1);
    const std::vector<ReadTwice> read = read_twice(pairs, jobs, progress);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      EXPECT_EQ(read[i].before.hex(), test::sha256(before[i])) << before[i].size();
      EXPECT_EQ(read[i].after.hex(), test::sha256(after[i])) << before[i].size();
      EXPECT_EQ(read[i].finite, !infinite.contains(i)) << i;
    }
  }
}

}  // namespace
}  // namespace assay
