// Clean clones whose .gitattributes or configuration have git write something else than it stores: made by
// git.
#include "verify/expected/git_checkout.h"

#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/git.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using nlohmann::json;
using test::GitRepository;

json report_of(const fs::path& path, std::vector<std::string> options = {}) {
  options.insert(options.begin(), {"verify", path.string(), "--json", "-"});
  return json::parse(test::assay(options).out);
}

json entry(const json& report, const std::string& name) {
  for (const json& file : report.at("files")) {
    if (file.at("name") == name) return file;
  }
  return {};
}

bool has_finding(const json& report, const std::string& code) {
  for (const json& finding : report.at("findings")) {
    if (finding.at("code") == code) return true;
  }
  return false;
}

void damage(const fs::path& path, std::size_t at) {
  std::string bytes = test::read_file(path);
  ASSERT_LT(at, bytes.size());
  bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
  test::write_file(path, bytes);
}

class GitCheckout : public ::testing::Test {
 protected:
  void SetUp() override { ASSAY_PROGRAM_OR_SKIP("git"); }

  // Texts of every kind that git's rules tell apart, and a weight.
  static void fill(const GitRepository& origin) {
    origin.write("lf.txt", "one\ntwo\nthree\n");
    origin.write("crlf.txt", "one\r\ntwo\r\n");
    origin.write("mixed.txt", "one\r\ntwo\nthree\n");
    origin.write("cr.txt", "one\rtwo\n");
    origin.write("nul.bin", std::string("a\n\0b\n", 5));
    origin.write("control.dat", std::string("a\n\x01\x02\x03\x04\n", 7));
    origin.write("dos.txt", "one\ntwo\n\x1A");
    origin.write("high.txt", "\xC3\xA9t\xC3\xA9\n\xF0\x9F\x98\x80\n");
    origin.write("empty.txt", "");
    origin.write("id.py",
                 "# $Id$\nprint('$Id$', '$Idx$', '$Id: kept by others $')\n# $Id: 00 $ $\n$Id: cut\n$Id");
    origin.write("sub/config.json", "{\n \"a\": 1\n}\n");
    origin.write("model.bin", test::lfs_pointer(test::sha256sum("weights"), 7));
  }

  // The commit as `git clone` writes it, with these settings in the clone's configuration.
  fs::path cloned(const GitRepository& origin, const std::vector<std::string>& settings = {}) const {
    const fs::path clone = dir_ / ("clone" + std::to_string(clones_++));
    std::vector<std::string> arguments = {"clone", "-q"};
    for (const std::string& setting : settings) arguments.insert(arguments.end(), {"-c", setting});
    arguments.insert(arguments.end(), {"file://" + origin.path().string(), clone.string()});
    origin.git(arguments);
    test::write_file(clone / "model.bin", "weights");
    return clone;
  }

  // Files whose bytes in the clone are not those of the commit.
  static std::vector<std::string> transformed(const fs::path& clone) {
    std::vector<std::string> names;
    for (const fs::directory_entry& file : fs::recursive_directory_iterator(clone)) {
      const std::string name = file.path().lexically_relative(clone).string();
      if (!file.is_regular_file() || name.starts_with(".git/") || name == "model.bin") continue;
      const auto git = [&](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), {"git", "-C", clone.string()});
        return test::run(arguments).out;
      };
      if (git({"hash-object", "--no-filters", file.path().string()}) != git({"rev-parse", "HEAD:" + name}))
        names.push_back(name);
    }
    return names;
  }

  // Clean as it is; with any byte of any file changed, not.
  static void expect_clean_and_guarded(const fs::path& clone) {
    const json whole = report_of(clone);
    EXPECT_EQ(whole.at("verdict"), "ok") << whole.at("verdict_line");
    const std::vector<std::string> names = transformed(clone);
    EXPECT_GT(names.size(), 0u) << "git wrote nothing else than it stores";
    EXPECT_TRUE(has_finding(whole, "git.checked_out_form"));
    const auto expect_all_failed = [&](const std::string& what, const auto& change) {
      std::map<std::string, std::string> bytes;
      for (const std::string& name : names) {
        bytes[name] = test::read_file(clone / name);
        std::string changed = bytes[name];
        change(changed);
        test::write_file(clone / name, changed);
      }
      const json report = report_of(clone);
      for (const std::string& name : names) {
        EXPECT_EQ(entry(report, name).at("status"), "failed") << name << ": " << what;
        test::write_file(clone / name, bytes[name]);
      }
    };
    expect_all_failed("first byte", [](std::string& text) { text.front() ^= 0x10; });
    expect_all_failed("middle", [](std::string& text) { text[text.size() / 2] ^= 0x10; });
    expect_all_failed("last byte", [](std::string& text) { text.back() ^= 0x10; });
    expect_all_failed("cut", [](std::string& text) { text.pop_back(); });
  }

  test::TempDir dir_;
  mutable int clones_ = 0;
};

TEST_F(GitCheckout, LineEndsByAttribute) {
  for (const std::string& attributes :
       std::vector<std::string>{"*.txt eol=crlf\n*.json text eol=crlf\n", "* text=auto eol=crlf\n",
                                "* text eol=crlf\n*.bin -text\n", "[attr]dos text eol=crlf\n*.txt dos\n",
                                "* eol=crlf\n*.txt eol=lf\n", "*.txt crlf eol=crlf\n"}) {
    const GitRepository origin(dir_ / std::to_string(attributes.size()));
    fill(origin);
    // As blobs: `git add` would normalize them.
    origin.commit();
    origin.write(".gitattributes", attributes);
    origin.git({"add", ".gitattributes"});
    origin.git({"commit", "-q", "-m", "attributes"});
    SCOPED_TRACE(attributes);
    expect_clean_and_guarded(cloned(origin));
  }
}

TEST_F(GitCheckout, LineEndsByConfiguration) {
  const GitRepository origin(dir_ / "origin");
  fill(origin);
  origin.commit();
  expect_clean_and_guarded(cloned(origin, {"core.autocrlf=true"}));
  EXPECT_EQ(report_of(cloned(origin, {"core.autocrlf=input"})).at("verdict"), "ok");
  EXPECT_EQ(report_of(cloned(origin, {"core.eol=crlf"})).at("verdict"), "ok");
  origin.write(".gitattributes", "* text=auto\n");
  origin.git({"add", ".gitattributes"});
  origin.git({"commit", "-q", "-m", "attributes"});
  expect_clean_and_guarded(cloned(origin, {"core.eol=crlf"}));
  expect_clean_and_guarded(cloned(origin, {"core.autocrlf=true", "core.eol=lf"}));
  EXPECT_EQ(report_of(cloned(origin, {"core.autocrlf=input", "core.eol=crlf"})).at("verdict"), "ok");
}

TEST_F(GitCheckout, Keywords) {
  const GitRepository origin(dir_ / "origin");
  fill(origin);
  origin.commit();
  origin.write(".gitattributes", "*.py ident eol=crlf\n");
  origin.git({"add", ".gitattributes"});
  origin.git({"commit", "-q", "-m", "attributes"});
  const fs::path clone = cloned(origin);
  EXPECT_NE(test::read_file(clone / "id.py").find("$Id: "), std::string::npos);
  expect_clean_and_guarded(clone);
  // Nothing but the blob's own id may stand in a keyword.
  std::string text = test::read_file(clone / "id.py");
  test::write_file(clone / "id.py", text.replace(text.find("$Id: ") + 5, 40, std::string(40, '0')));
  EXPECT_EQ(entry(report_of(clone), "id.py").at("status"), "failed");
}

TEST_F(GitCheckout, Encodings) {
  const GitRepository origin(dir_ / "origin");
  origin.write(".gitattributes",
               "*.u16 working-tree-encoding=UTF-16 eol=crlf\n*.le working-tree-encoding=UTF-16LE-BOM text\n"
               "*.latin working-tree-encoding=ISO-8859-1\n*.gb working-tree-encoding=GB18030\n");
  origin.commit();
  // Through git's own index: what `git add` stores of a file in that encoding.
  const auto store = [&](const std::string& name, const std::string& utf8) {
    const std::string id = origin.git({"hash-object", "-w", "--stdin"}, utf8);
    origin.git({"update-index", "--add", "--cacheinfo", "100644," + id + "," + name});
  };
  store("a.u16", "one\ntwo\n");
  store("b.le", "\xC3\xA9t\xC3\xA9\n");
  store("c.latin", "\xC3\xA9t\xC3\xA9\n");
  store("d.gb", "\xD0\xB4\xD0\xBE\xD0\xBC\n");  // two bytes a letter in either
  store("model.bin", test::lfs_pointer(test::sha256sum("weights"), 7));
  origin.git({"commit", "-q", "-m", "texts"});
  const fs::path clone = cloned(origin);
  EXPECT_EQ(fs::file_size(clone / "d.gb"), 7u);
  EXPECT_EQ(transformed(clone).size(), 4u);
  expect_clean_and_guarded(clone);
}

// Of a part of a clone, and with files that lie elsewhere; and as stored, which is right as well.
TEST_F(GitCheckout, OfAFileAFolderAndARoot) {
  const GitRepository origin(dir_ / "origin");
  fill(origin);
  origin.write("sub/deep/x.json", "{\n}\n");
  origin.write("sub/deep/w.bin", "weights");
  origin.commit();
  origin.write(".gitattributes", "*.json eol=crlf\n");
  origin.write("sub/deep/.gitattributes", "*.json eol=lf\n");
  origin.git({"add", "."});
  origin.git({"commit", "-q", "-m", "attributes"});
  const fs::path clone = cloned(origin);
  EXPECT_EQ(fs::file_size(clone / "sub/deep/x.json"), 4u) << "the nearer one counts";
  for (const char* part : {"sub/config.json", "sub", "sub/deep", "sub/deep/x.json"}) {
    const json report = report_of(clone / part);
    for (const json& file : report.at("files")) EXPECT_EQ(file.at("status"), "ok") << file.at("name");
    EXPECT_GT(report.at("files").size(), 0u);
  }
  fs::create_directories(dir_ / "elsewhere");
  fs::copy(clone / "sub", dir_ / "elsewhere/sub", fs::copy_options::recursive);
  EXPECT_EQ(
      entry(report_of(clone, {"--root", (dir_ / "elsewhere").string()}), "sub/config.json").at("status"),
      "ok");
  test::write_file(clone / "sub/config.json", "{\n \"a\": 1\n}\n");
  EXPECT_EQ(report_of(clone).at("verdict"), "ok");
  const auto manifest = test::assay({"manifest", clone.string(), "--hash", "-o", (dir_ / "SUMS").string()});
  EXPECT_EQ(manifest.exit_code, 0) << manifest.err;
  EXPECT_EQ(test::run({"sha256sum", "-c", (dir_ / "SUMS").string()}, {.directory = clone}).exit_code, 0);
}

// What lies in the work tree does not say how it is examined: attributes are the commit's.
TEST_F(GitCheckout, AttributesOfTheWorkTreeAreNotAsked) {
  const GitRepository origin(dir_ / "origin");
  fill(origin);
  origin.commit();
  const fs::path clone = cloned(origin);
  test::write_file(clone / ".gitattributes", "* eol=crlf\n");
  test::run({"git", "-C", clone.string(), "add", ".gitattributes"});
  test::write_file(clone / "lf.txt", "one\r\ntwo\r\nthree\r\n");
  EXPECT_EQ(entry(report_of(clone), "lf.txt").at("status"), "failed");
}

// A filter's program is not run: a file that it changes has nobody who says what it should be, which is said.
TEST_F(GitCheckout, FiltersAreNamed) {
  const GitRepository origin(dir_ / "origin");
  fill(origin);
  origin.write("secret.txt", "abc\n");
  origin.write("same.txt", "123\n");
  origin.write(".gitattributes", "secret.txt filter=rot\nsame.txt filter=rot\nlf.txt filter=lfs\n");
  origin.commit();
  const fs::path clone =
      cloned(origin, {"filter.rot.smudge=tr a-z n-za-m", "filter.rot.clean=tr a-z n-za-m"});
  EXPECT_EQ(test::read_file(clone / "secret.txt"), "nop\n");
  const json report = report_of(clone);
  EXPECT_EQ(report.at("verdict"), "ok") << report.dump(1);
  EXPECT_EQ(entry(report, "secret.txt").at("status"), "unchecked");
  EXPECT_EQ(entry(report, "same.txt").at("status"), "ok");
  EXPECT_TRUE(has_finding(report, "git.filtered"));
  damage(clone / "lf.txt", 2);
  EXPECT_EQ(entry(report_of(clone), "lf.txt").at("status"), "failed");
}

}  // namespace
}  // namespace assay
