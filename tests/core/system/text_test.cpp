#include "core/system/text.h"

#include <gtest/gtest.h>

#include "core/system/error.h"
#include "core/system/file.h"

namespace assay {
namespace {

TEST(Text, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(escape_for_terminal("model-00001.safetensors"), "model-00001.safetensors");
  EXPECT_EQ(escape_for_terminal("a\nb\tc\x1b[2J"), "a\\nb\\tc\\x1b[2J");
  EXPECT_EQ(escape_for_terminal("模型"), "模型");
  EXPECT_EQ(escape_for_terminal("x\xE2\x80\xAEgnp"), "x\\u{202e}gnp");  // right-to-left override
  EXPECT_EQ(escape_for_terminal("\xC2\x9B"), "\\x9b");                  // C1: CSI in one byte
  EXPECT_EQ(escape_for_terminal("\xFF\xC0\x80\xED\xA0\x80"), "\\xff\\xc0\\x80\\xed\\xa0\\x80");
  EXPECT_EQ(escape_for_terminal(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(Text, Utf8ValidityFollowsTheUnicodeTable) {
  EXPECT_TRUE(is_valid_utf8("aß模\xF0\x9F\x98\x80"));
  for (const char* bad :
       {"\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82"}) {
    EXPECT_FALSE(is_valid_utf8(bad)) << escape_for_terminal(bad);
  }
}

TEST(Text, SizesReadAndWritten) {
  EXPECT_EQ(human_bytes(999), "999 bytes");
  EXPECT_EQ(human_bytes(688'586'727'753), "688.6 GB");
  EXPECT_EQ(human_bytes(999'960'000), "1.00 GB");
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(671'026'419'200), "671,026,419,200");
  EXPECT_EQ(parse_bytes("16MiB"), 16u << 20);
  EXPECT_EQ(parse_bytes("48GB"), 48'000'000'000u);
  EXPECT_EQ(parse_bytes("1.5 KiB"), 1536u);
  EXPECT_EQ(parse_bytes("4096"), 4096u);
  for (const char* bad : {"", "GB", "-1", "1XB", "1.5", "99999999999999999999", "1e3GB", "20000PB 1"}) {
    EXPECT_THROW(parse_bytes(bad), Error) << bad;
  }
}

TEST(Text, Durations) {
  EXPECT_EQ(human_duration(0.42), "0.42s");
  EXPECT_EQ(human_duration(75.3), "1m15s");
  EXPECT_EQ(human_duration(7260), "2h01m");
}

TEST(File, OnlyNamesBelowTheRootAreSafe) {
  for (const char* good : {"a", "a/b.c", ".cache/x", "a..b/c", "模型/x"})
    EXPECT_TRUE(is_safe_relative_path(good)) << good;
  for (const char* bad :
       {"", "/etc/passwd", "../x", "a/../b", "a/..", "./a", "a//b", "a/", "C:/x", "a\\b", ".."}) {
    EXPECT_FALSE(is_safe_relative_path(bad)) << bad;
  }
  EXPECT_FALSE(is_safe_relative_path(std::string_view("a\0b", 3)));
}

TEST(Error, IsOneLineWithItsContext) {
  Error error = Error::input("offset beyond\nthe end")
                    .in("x/m.safetensors")
                    .tensor("w\x1b")
                    .at(64)
                    .remedy("fetch it again");
  error.in("outer is ignored");
  EXPECT_EQ(error.line(), "x/m.safetensors: tensor w\\x1b: byte 64: offset beyond\\nthe end; fetch it again");
  EXPECT_EQ(error.exit_code(), 2);
  EXPECT_EQ(Error::refused("").exit_code(), 1);
  EXPECT_EQ(Error::internal("").exit_code(), 3);
}

}  // namespace
}  // namespace assay
