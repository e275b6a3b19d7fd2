// What `verify --ranges` prints, curl understands: the damaged ranges are fetched from a web server, put in
// place, and the file is right again.
#include <fstream>
#include <sstream>

#include "tests/support/range_server.h"
#include "tests/support/small_model.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

void overwrite(const fs::path& path, std::uint64_t offset, const std::string& bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(offset));
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TEST(CurlRanges, FetchJustWhatIsDamaged) {
  ASSAY_PROGRAM_OR_SKIP("curl");
  const TempDir dir;
  const SmallModel model = write_small_model(dir / "good");
  fs::copy(dir / "good", dir / "bad", fs::copy_options::recursive);
  const std::string manifest = (dir / "chunks.json").string();
  ASSERT_EQ(assay({"manifest", (dir / "good").string(), "--chunks", "4KiB", "-o", manifest}).exit_code, 0);
  const fs::path bad = dir / "bad" / model.shards[0];
  overwrite(bad, 5000, "damage");
  overwrite(bad, 17000, std::string(9000, 'x'));

  const ProcessResult found = assay({"verify", (dir / "bad").string(), "--manifest", manifest, "--ranges"});
  ASSERT_EQ(found.exit_code, 1) << found.out << found.err;
  const RangeServer server(dir / "good" / model.shards[0]);
  std::istringstream lines(found.out);
  int ranges = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("curl -r ")) continue;
    ++ranges;
    std::string command = line;
    command.replace(command.find("-o part"), 7, "-s -o " + (dir / "part").string());
    command.replace(command.find("URL"), 3, server.url());
    ASSERT_EQ(run({"sh", "-c", command}).exit_code, 0) << command;
    const std::uint64_t begin = std::stoull(line.substr(std::string("curl -r ").size()));
    overwrite(bad, begin, read_file(dir / "part"));
  }
  EXPECT_EQ(ranges, 2) << found.out;
  EXPECT_EQ(assay({"verify", (dir / "bad").string(), "--manifest", manifest}).exit_code, 0);
}

}  // namespace
}  // namespace assay::test
