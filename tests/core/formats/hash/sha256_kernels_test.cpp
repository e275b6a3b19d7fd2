// Every kernel against the published vectors of FIPS 180-4 and against OpenSSL.
#include "core/formats/hash/sha256_kernels.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/formats/hash/hasher.h"
#include "core/formats/hash/kernel_plan.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay::sha256 {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::vector<std::byte> noise(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(size);
  for (auto& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

std::string openssl(std::span<const std::byte> bytes) {
  return digest_of(DigestKind::sha256, bytes).hex();
}

// Messages of any lengths side by side: all lanes go as far as the shortest still running, as the hasher
// does.
std::vector<std::string> hash_together(const Kernel& kernel,
                                       const std::vector<std::span<const std::byte>>& messages) {
  std::vector<State> states(messages.size(), kInitialState);
  std::vector<std::size_t> blocks_done(messages.size(), 0);
  while (true) {
    std::vector<State*> state_at;
    std::vector<const std::byte*> data_at;
    std::vector<std::size_t> who;
    std::size_t blocks = SIZE_MAX;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const std::size_t left = messages[i].size() / kBlock - blocks_done[i];
      if (left == 0) continue;
      state_at.push_back(&states[i]);
      data_at.push_back(messages[i].data() + blocks_done[i] * kBlock);
      who.push_back(i);
      blocks = std::min(blocks, left);
    }
    if (who.empty()) break;
    compress(kernel, state_at, data_at, blocks);
    for (const std::size_t i : who) blocks_done[i] += blocks;
  }
  std::vector<std::string> digests;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    digests.push_back(to_hex(
        finish(states[i], messages[i].subspan(messages[i].size() / kBlock * kBlock), messages[i].size())));
  }
  return digests;
}

class EveryKernel : public testing::TestWithParam<Kernel> {};

TEST_P(EveryKernel, MatchesThePublishedVectors) {
  const std::string million(1'000'000, 'a');
  const std::string two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  const std::vector<std::pair<std::string_view, std::string>> vectors = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {two_blocks, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {million, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
  for (const auto& [message, expected] : vectors) {
    const std::vector<std::span<const std::byte>> in_every_lane(static_cast<std::size_t>(GetParam().lanes),
                                                                bytes_of(message));
    for (const std::string& digest : hash_together(GetParam(), in_every_lane)) EXPECT_EQ(digest, expected);
  }
}

TEST_P(EveryKernel, MatchesOpensslForEveryShortLength) {
  const auto bytes = noise(300 + kMaxLanes, 1);
  for (std::size_t length = 0; length <= 300; ++length) {
    std::vector<std::span<const std::byte>> messages;  // same length, other bytes in every lane
    for (int i = 0; i < GetParam().lanes; ++i) messages.push_back(std::span(bytes).subspan(i, length));
    const auto digests = hash_together(GetParam(), messages);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      ASSERT_EQ(digests[i], openssl(messages[i])) << length << " bytes in lane " << i;
    }
  }
}

TEST_P(EveryKernel, LanesMayEndAtDifferentTimes) {
  const auto bytes = noise(3 << 20, 2);
  std::mt19937 random(3);
  for (int trial = 0; trial < 3; ++trial) {
    for (int lanes = 1; lanes <= GetParam().lanes; ++lanes) {  // the remaining lanes idle
      std::vector<std::span<const std::byte>> messages;
      for (int i = 0; i < lanes; ++i) messages.push_back(std::span(bytes).subspan(i, random() % (100 << 10)));
      const auto digests = hash_together(GetParam(), messages);
      for (std::size_t i = 0; i < messages.size(); ++i) ASSERT_EQ(digests[i], openssl(messages[i]));
    }
  }
}

TEST_P(EveryKernel, MatchesOpensslForMegabytes) {
  const auto bytes = noise((3 << 20) + 77, 4);
  const std::vector<std::span<const std::byte>> messages(static_cast<std::size_t>(GetParam().lanes), bytes);
  const std::string expected = openssl(bytes);
  for (const std::string& digest : hash_together(GetParam(), messages)) EXPECT_EQ(digest, expected);
}

TEST_P(EveryKernel, TakesOverAMessageBetweenTwoBlocks) {
  const auto bytes = noise(64 * kBlock, 5);
  State state = kInitialState;
  State* const states[] = {&state};
  for (std::size_t block = 0; block < 64; ++block) {
    const std::byte* const data[] = {bytes.data() + block * kBlock};
    compress(block % 2 == 0 ? GetParam() : kernels().front(), states, data, 1);
  }
  EXPECT_EQ(to_hex(finish(state, {}, bytes.size())), openssl(bytes));
}

INSTANTIATE_TEST_SUITE_P(Sha256, EveryKernel, testing::ValuesIn(kernels().begin(), kernels().end()),
                         [](const auto& info) {
                           std::string name(info.param.name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Sha256Kernels, OpensslIsAlwaysThere) {
  ASSERT_FALSE(kernels().empty());
  EXPECT_EQ(kernels().front().name, "openssl");
  EXPECT_EQ(kernels().front().lanes, 1);
}

TEST(KernelPlan, RunsAnyNumberOfMessages) {
  const auto bytes = noise(20 * kBlock, 6);
  for (const KernelPlan& plan : {KernelPlan::typical(), KernelPlan::measured()}) {
    EXPECT_GE(plan.lanes(), 1);
    EXPECT_LE(plan.lanes(), kMaxLanes);
    for (std::size_t n = 1; n <= kMaxLanes; ++n) {
      std::vector<State> states(n, kInitialState);
      std::vector<State*> state_at;
      std::vector<const std::byte*> data_at;
      for (std::size_t i = 0; i < n; ++i) {
        state_at.push_back(&states[i]);
        data_at.push_back(bytes.data() + i * kBlock);
      }
      plan.run(state_at, data_at, 4);
      for (std::size_t i = 0; i < n; ++i) {
        const auto message = std::span(bytes).subspan(i * kBlock, 4 * kBlock);
        EXPECT_EQ(to_hex(finish(states[i], {}, message.size())), openssl(message)) << i << " of " << n;
      }
    }
  }
}

TEST(KernelPlan, NamesWhatIsNotHere) {
  try {
    KernelPlan::only("abacus");
    FAIL() << "no such kernel, yet no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(error.message().find("abacus"), std::string::npos);
  }
}

}  // namespace
}  // namespace assay::sha256
