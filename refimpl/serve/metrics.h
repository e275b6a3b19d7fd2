// What /metrics tells, in Prometheus' text form.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

#include "refimpl/serve/engine_thread.h"

namespace assay {

// Seconds counted into buckets, as Prometheus' histograms are.
class SecondsHistogram {
 public:
  void add(double seconds);
  std::string text(const std::string& name, const std::string& help) const;

 private:
  static constexpr std::array<double, 12> kBounds = {0.001, 0.005, 0.01, 0.05, 0.1, 0.25,
                                                     0.5,   1,     2.5,  10,   60,  600};
  mutable std::mutex mutex_;
  std::array<std::size_t, kBounds.size() + 1> counts_ = {};
  double sum_ = 0;
};

class ServerMetrics {
 public:
  void answered(const std::string& route, int status);
  SecondsHistogram first_token, whole_answer;
  std::atomic<std::size_t> generated_tokens = 0;
  std::atomic<std::size_t> clients_gone = 0;

  std::string text(const EngineState& engine) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::size_t> answers_;
};

}  // namespace assay
