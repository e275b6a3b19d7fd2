// A plugin's kernel as a Kernel like any other. It is called in this process: what crashes, crashes us.
#pragma once

#include <memory>
#include <string>

#include "kernels/plugin.h"
#include "kernels/plugin/marshal.h"
#include "kernels/registry/registry.h"

namespace assay {

// A kernel as a plugin described it, checked, with the descriptions copied.
struct PluginKernel {
  std::string op, name, about;  // name: "mine.rows"
  Device device = Device::cpu;
  Invariants invariants;
  double accumulator_roundoff = 0x1p-24;
  // What is called; absent (size 0) where the kernel lives in another process.
  assay_kernel entry = {};
};

// Adds it to its operation's kernels. Weights stay operand until `weights` is cleared.
void add_adapted(Registry& registry, const PluginKernel& kernel, std::shared_ptr<MarshalledWeights> weights);

// Adds it as one that is examined elsewhere.
void add_remote(Registry& registry, const PluginKernel& kernel, std::shared_ptr<RemoteKernel> remote);

// Seconds of the fastest run, operands being operand once; nullopt where the kernel does not take the call.
template <class Call>
std::optional<double> time_plugin(const PluginKernel& kernel, MarshalledWeights& weights, Ops& ops,
                                  const Call& call, double least);

// The operations' numbers in kernels/plugin.h; empty for a number that is none.
std::string_view op_name(std::int32_t op);

}  // namespace assay
