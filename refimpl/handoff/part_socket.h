// Parts of a hand-off over TCP. The decoder listens, the prefill connects:
//
//   prefill   "assay hand-off 1" and, where there are keys, "Bearer KEY"     decoder   "" or why not
//   prefill   part, part, …                                                  decoder   at the end, or when it has seen enough:
//                                                                                      "" or why not
//
// Each of these is a frame: its length in 8 bytes, little-endian, then so many bytes. Nothing is encrypted, as with `serve`:
// between machines that others can listen to, put a tunnel around it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/system/error.h"
#include "refimpl/handoff/part_stream.h"

namespace assay {

struct SocketPlace {
  std::string host;
  std::uint16_t port = 0;  // 0, to listen: any that is free
};
// "tcp://127.0.0.1:7001", "tcp://[::1]:7001"; none: it is no such address. Throws Error::usage for one without a port.
std::optional<SocketPlace> socket_place(const std::string& text);

// A connection: frames, with patience. Closed when it goes.
class FrameSocket {
 public:
  FrameSocket(int descriptor, Patience patience) : descriptor_(descriptor), patience_(patience) {}
  FrameSocket(FrameSocket&& other) noexcept;
  FrameSocket& operator=(FrameSocket&& other) noexcept;
  FrameSocket(const FrameSocket&) = delete;
  FrameSocket& operator=(const FrameSocket&) = delete;
  ~FrameSocket();

  void set_patience(Patience patience) { patience_ = patience; }
  // They throw Error::io where the other side is gone, or nothing moves.
  void send(std::span<const std::byte> frame);
  void send(std::string_view text) { send(std::as_bytes(std::span(text))); }
  std::vector<std::byte> receive(std::uint64_t most);
  std::string receive_text(std::uint64_t most);
  bool has_something() const;  // to receive, or the end
  void end_sending() const;
  void drain(Patience time);  // reads and forgets, until the other side ends

 private:
  void wait(short events) const;
  void read(std::span<std::byte> bytes);
  int descriptor_;
  Patience patience_;
};

// As often as it takes while patience lasts: the other side may be starting.
FrameSocket connect_to(const SocketPlace& place, Patience patience);

class PartSocketSink : public PartSink {
 public:
  // `authorization`: empty, or "Bearer …".
  PartSocketSink(const SocketPlace& place, const std::string& authorization, Patience patience);
  // To be connected and admitted by then: where several are waited for, one after the other, all are.
  PartSocketSink(const SocketPlace& place, const std::string& authorization, Patience patience,
                 HandoffClock::time_point until);
  void put(std::uint64_t serial, std::span<const std::byte> part) override;
  void close() override;

 private:
  [[noreturn]] void tell_refusal(const Error& error);
  FrameSocket socket_;
};

class PartSocketSource : public PartSource {
 public:
  using Admits = std::function<bool(const std::string& authorization)>;
  // Listens; port() is told before anybody is waited for. Who is not admitted is told so, and the next one waited for.
  PartSocketSource(const SocketPlace& place, Admits admits, Patience patience);
  ~PartSocketSource() override;
  std::uint16_t port() const;
  std::vector<std::byte> next(std::uint64_t serial) override;
  void taken() override;
  void refuse(const std::string& why) override;

 private:
  void wait_for_prefill();
  int listening_;
  Admits admits_;
  Patience patience_;
  std::optional<FrameSocket> socket_;
};

}  // namespace assay
