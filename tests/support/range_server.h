// A web server of one file on 127.0.0.1 that understands `Range: bytes=a-b`, for as long as the object lives.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>

namespace assay::test {

class RangeServer {
 public:
  explicit RangeServer(const std::filesystem::path& file);
  RangeServer(const RangeServer&) = delete;
  RangeServer& operator=(const RangeServer&) = delete;
  ~RangeServer();
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  void serve(const std::stop_token& stop);
  std::string contents_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::jthread thread_;
};

}  // namespace assay::test
