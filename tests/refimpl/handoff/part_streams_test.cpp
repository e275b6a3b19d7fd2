// Folders and sockets that parts travel by.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "core/system/error.h"
#include "refimpl/handoff/part_folder.h"
#include "refimpl/handoff/part_socket.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using Bytes = std::vector<std::byte>;
constexpr Patience kShort{300};

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}
std::string thrown(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.line();
  }
  return "";
}
std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(PartFolder, BringsPartsAndLeavesNothing) {
  const test::TempDir dir;
  {
    PartFolderSink sink(dir / "a");
    PartFolderSource source(dir / "a", kShort);
    sink.put(0, bytes_of("ticket"));
    EXPECT_EQ(source.next(0), bytes_of("ticket"));  // while the writer is there
    sink.put(1, bytes_of("end"));
    EXPECT_EQ(source.next(1), bytes_of("end"));
    sink.close();
    EXPECT_EQ(files_in(dir / "a"), 2U);
  }
  PartFolderSource source(dir / "a", kShort);
  EXPECT_EQ(source.next(0), bytes_of("ticket"));
  EXPECT_EQ(source.next(1), bytes_of("end"));
  source.done();
  EXPECT_EQ(files_in(dir / "a"), 0U);
}

TEST(PartFolder, TellsThatItsWriterIsGone) {
  const test::TempDir dir;
  EXPECT_NE(thrown([&] { PartFolderSource(dir.path(), kShort).next(0); }).find("no hand-off began"),
            std::string::npos);
  // As a killed one leaves it: parts without their writer.
  test::write_file(dir / "00000000.handoff", "ticket");
  test::write_file(dir / "unrelated", "stays");
  PartFolderSource source(dir.path(), Patience(600'000));
  source.next(0);
  EXPECT_NE(thrown([&] { source.next(1); }).find("ended before its hand-off was whole"), std::string::npos);
  // Nobody writes what is being taken.
  EXPECT_NE(thrown([&] { PartFolderSink sink(dir.path()); }).find("another process"), std::string::npos);
}

TEST(PartFolder, CleansUpBehindOthersAndItself) {
  const test::TempDir dir;
  test::write_file(dir / "00000000.handoff", "of a killed one");
  test::write_file(dir / "00000007.handoff", "of a killed one");
  test::write_file(dir / "unrelated", "stays");
  {
    PartFolderSink sink(dir.path());
    EXPECT_EQ(files_in(dir.path()), 1U);
    sink.put(0, bytes_of("ticket"));
  }  // not closed: it came to nothing
  EXPECT_EQ(files_in(dir.path()), 1U);
}

TEST(PartFolder, OpensNothingButFiles) {
  const test::TempDir dir;
  test::write_file(dir / "elsewhere", "secret");
  fs::create_symlink(dir / "elsewhere", dir / "00000000.handoff");
  PartFolderSource source(dir.path(), kShort);
  EXPECT_NE(thrown([&] { source.next(0); }).find("a link"), std::string::npos);
  fs::remove(dir / "00000000.handoff");
  ASSERT_EQ(::mkfifo((dir / "00000000.handoff").c_str(), 0600), 0);
  EXPECT_NE(thrown([&] { source.next(0); }).find("not a file"), std::string::npos);
}

TEST(PartSocket, ReadsAddresses) {
  EXPECT_EQ(socket_place("folder/of/parts"), std::nullopt);
  EXPECT_EQ(socket_place("tcp://[::1]:7001")->host, "::1");
  EXPECT_EQ(socket_place("tcp://example:80")->port, 80);
  for (const std::string wrong :
       {"tcp://", "tcp://host", "tcp://host:", "tcp://:7", "tcp://host:65536", "tcp://host:7x"})
    EXPECT_THROW(socket_place(wrong), Error) << wrong;
}

// A decoder that listens, in a thread of its own.
struct Listening {
  explicit Listening(
      const std::function<void(PartSocketSource&)>& work,
      PartSocketSource::Admits admits = [](const std::string&) { return true; },
      Patience patience = Patience(10'000))
      : source({"127.0.0.1", 0}, std::move(admits), patience),
        place{"127.0.0.1", source.port()},
        thread([this, work] { said = thrown([&] { work(source); }); }) {}
  ~Listening() {
    if (thread.joinable()) thread.join();
  }
  std::string said;
  PartSocketSource source;
  SocketPlace place;
  std::thread thread;
};

TEST(PartSocket, BringsPartsAndTheLastWord) {
  const Bytes large(5'000'000, std::byte{7});
  Listening decoder([&](PartSocketSource& source) {
    EXPECT_EQ(source.next(0), bytes_of("ticket"));
    EXPECT_EQ(source.next(1), large);
    source.taken();
  });
  PartSocketSink sink(decoder.place, "", Patience(10'000));
  sink.put(0, bytes_of("ticket"));
  sink.put(1, large);
  sink.close();
  decoder.thread.join();
  EXPECT_EQ(decoder.said, "");
}

TEST(PartSocket, TellsThePrefillWhatWasWrong) {
  Listening decoder([&](PartSocketSource& source) {
    source.next(0);
    source.refuse("part 0 is damaged");
  });
  PartSocketSink sink(decoder.place, "", Patience(10'000));
  const std::string said = thrown([&] {
    for (std::uint64_t i = 0; i < 100; ++i) {
      sink.put(i, Bytes(100'000));
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    sink.close();
  });
  EXPECT_NE(said.find("refused it: part 0 is damaged"), std::string::npos) << said;
}

TEST(PartSocket, TellsThatThePrefillIsGone) {
  Listening decoder([](PartSocketSource& source) {
    source.next(0);
    source.next(1);
  });
  {
    PartSocketSink sink(decoder.place, "", Patience(10'000));
    sink.put(0, bytes_of("ticket"));
  }
  decoder.thread.join();
  EXPECT_NE(decoder.said.find("the prefill ended before its hand-off was whole"), std::string::npos);
}

TEST(PartSocket, AsksForTheKey) {
  Listening decoder([](PartSocketSource& source) { source.next(0); },
                    [](const std::string& key) { return key == "Bearer right-key"; });
  EXPECT_NE(thrown([&] { PartSocketSink sink(decoder.place, "", Patience(5'000)); }).find("no such key"),
            std::string::npos);
  EXPECT_NE(thrown([&] {
              PartSocketSink sink(decoder.place, "Bearer wrong", Patience(5'000));
            }).find("no such key"),
            std::string::npos);
  PartSocketSink sink(decoder.place, "Bearer right-key", Patience(5'000));
  sink.put(0, bytes_of("ticket"));
  decoder.thread.join();
  EXPECT_EQ(decoder.said, "");
}

// Strangers that say nothing, or nonsense, or lie about lengths, take no more than their time.
TEST(PartSocket, HearsOutStrangers) {
  Listening decoder([](PartSocketSource& source) { source.next(0); });
  const auto stranger = [&](const Bytes& says) {
    FrameSocket socket = connect_to(decoder.place, Patience(5'000));
    socket.send(says);
  };
  stranger(bytes_of("GET / HTTP/1.1"));
  { FrameSocket socket = connect_to(decoder.place, Patience(5'000)); }
  PartSocketSink sink(decoder.place, "", Patience(10'000));
  sink.put(0, bytes_of("ticket"));
  decoder.thread.join();
  EXPECT_EQ(decoder.said, "");
}

TEST(PartSocket, WaitsForNobodyForEver) {
  Listening decoder([](PartSocketSource& source) { source.next(0); }, [](const std::string&) { return true; },
                    kShort);
  decoder.thread.join();
  EXPECT_NE(decoder.said.find("no hand-off began"), std::string::npos);
  EXPECT_NE(thrown([&] {
              PartSocketSink sink({"127.0.0.1", 1}, "", kShort);
            }).find("nobody takes"),
            std::string::npos);
}

}  // namespace
}  // namespace assay
