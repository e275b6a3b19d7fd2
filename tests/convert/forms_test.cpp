// The stored forms of the wild: checkpoints that their owners' packages wrote, decoded to the values that
// those make of them (data/make_forms_fixtures.py).
#include <gtest/gtest.h>

#include <sstream>

#include "core/formats/checkpoint.h"
#include "core/formats/stream_digest.h"
#include "core/system/file.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using test::assay;
using test::TempDir;

const fs::path kFixtures = test::source_dir() / "data/fixtures/convert";

std::string digest_of(const Checkpoint& checkpoint, const CheckpointTensor& tensor) {
  std::string bytes(tensor.bytes, '\0');
  File::open(checkpoint.files[tensor.file].path)
      .read_exactly(tensor.offset, std::as_writable_bytes(std::span(bytes)));
  StreamDigest digest(DigestKind::sha256, bytes.size());
  digest.update(std::as_bytes(std::span(bytes)));
  return digest.finish().hex();
}

struct Expected {
  std::string folder, tensor, sha256;
};
std::vector<Expected> expected_values() {
  std::vector<Expected> all;
  std::istringstream lines(test::read_file(kFixtures / "FORMS.tsv"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    Expected& one = all.emplace_back();
    fields >> one.folder >> one.tensor >> one.sha256;
  }
  return all;
}

TEST(StoredForms, DecodeToWhatTheirOwnersMakeOfThem) {
  const std::vector<Expected> expected = expected_values();
  ASSERT_EQ(expected.size(), 29u);
  const TempDir dir;
  for (const Expected& one : expected) {
    const fs::path out = dir / one.folder;
    if (!fs::exists(out)) {
      // Packed integers with zero points far from the middle decode to values no trained matrix has.
      const auto made =
          assay({"convert", kFixtures / "forms" / one.folder, out, "--to", "f32", "--allow-large"});
      ASSERT_EQ(made.exit_code, 0) << one.folder << made.out << made.err;
      EXPECT_EQ(test::read_file(out / "config.json").find("quantization"), std::string::npos) << one.folder;
      // What was decoded is equal to what it was decoded from, rows taken otherwise.
      EXPECT_EQ(assay({"convert", "--equal", kFixtures / "forms" / one.folder, out}).exit_code, 0)
          << one.folder;
    }
    const Checkpoint made = open_checkpoint(out, 1);
    const CheckpointTensor* tensor = made.find(one.tensor);
    ASSERT_NE(tensor, nullptr) << one.folder << " " << one.tensor;
    EXPECT_EQ(digest_of(made, *tensor), one.sha256) << one.folder << " " << one.tensor;
  }
}

}  // namespace
}  // namespace assay
