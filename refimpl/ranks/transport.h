// Messages between the ranks of a run: threads of one process (thread_transport.h) or processes under mpirun
// (mpi_transport.h). Nobody waits for ever: what does not come within the time limit is an Error that names who was
// waited for, and where one rank fails all others end.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

namespace assay {

class Transport {
 public:
  using Message = std::vector<double>;

  explicit Transport(std::chrono::milliseconds limit) : limit_(limit) {}
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  virtual std::size_t rank() const = 0;
  virtual std::size_t size() const = 0;
  // Returns at once; messages of one sender on one channel come in the order in which they were sent.
  virtual void send(std::size_t to, int channel, Message message) = 0;
  // Throws Error::io after the limit, or where another rank has failed; RanksInterrupted after Ctrl-C.
  virtual Message receive(std::size_t from, int channel) = 0;

 protected:
  std::chrono::milliseconds limit() const { return limit_; }

 private:
  std::chrono::milliseconds limit_;
};

struct RanksInterrupted {};

}  // namespace assay
