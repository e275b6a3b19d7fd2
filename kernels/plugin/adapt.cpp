#include "kernels/plugin/adapt.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

#include "core/system/error.h"
#include "kernels/harness/every_call.h"
#include "kernels/harness/examine.h"
#include "kernels/plugin/calls.h"
#include "kernels/plugin/float_mode.h"

namespace assay {
namespace {

template <class Call>
constexpr bool kIsOffered = !kIsListed<Call, CallsOfOurOwn>;

std::int32_t abi_precision(Precision precision) {
  switch (precision) {
    case Precision::f32: return ASSAY_PRECISION_F32;
    case Precision::bf16: return ASSAY_PRECISION_BF16;
    case Precision::fp8_block: return ASSAY_PRECISION_FP8_BLOCK;
    case Precision::int8: return ASSAY_PRECISION_INT8;
    case Precision::f64:
    case Precision::int16:
    case Precision::int8_block: break;  // not offered: plugin.h has no name for them
  }
  return 0;
}

assay_context context_for(const assay_kernel& kernel, const Arithmetic& arithmetic, int jobs, bool run) {
  assay_context context = {};
  context.size = sizeof context;
  context.precision = abi_precision(arithmetic.precision);
  context.jobs = jobs;
  if (kernel.device == ASSAY_CUDA && run) {
    context.device = cuda_memory().device();
    context.stream = cuda_memory().stream();
  }
  return context;
}

template <class Call>
assay_call wrapped(const typename AbiOf<Call>::Struct& a) {
  assay_call call = {};
  call.size = sizeof call;
  call.op = AbiOf<Call>::kOp;
  AbiOf<Call>::set(call, &a);
  return call;
}

// Does the ABI have words for all that the call asks?
template <class Call>
bool has_words(const Call&) {
  return true;
}
bool has_words(const AttentionCall& call) {
  return call.slopes.empty();
}
bool has_words(Activation kind) {
  return kind <= Activation::gpt_oss;
}
bool has_words(const ActivationCall& call) {
  return has_words(call.kind);
}
bool has_words(const GatedActivationCall& call) {
  return has_words(call.form.activation);
}
bool has_words(const FusedMoeCall& call) {
  return has_words(call.experts.form.activation);
}

template <class Call>
bool takes(const assay_kernel& kernel, const Arithmetic& arithmetic, const Call& call) {
  if (abi_precision(arithmetic.precision) == 0 || !has_words(call)) return false;
  if (kernel.activations == ASSAY_BF16 && !arithmetic.bfloat16()) return false;
  MarshalledCall shapes({.activations = kernel.activations});
  ResultOf<Call> result = result_of(nullptr, call);
  const auto a = described(shapes, call, result);
  if (!shapes.expressible()) return false;
  const assay_context context = context_for(kernel, arithmetic, 1, false);
  const assay_call wrapped_call = wrapped<Call>(a);
  return kernel.takes(kernel.user, &context, &wrapped_call) != 0;
}

// One line of what the kernel wrote, if it wrote a string at all.
std::string said(const std::array<char, 512>& message) {
  const std::string_view text(message.data(), strnlen(message.data(), message.size()));
  return std::string(text.substr(0, text.find('\n')));
}

void run_once(const assay_kernel& kernel, const assay_context& context, const assay_call& call) {
  std::array<char, 512> message = {};
  const FloatMode before = FloatMode::now();
  int failed = 0;
  try {
    failed = kernel.run(kernel.user, &context, &call, message.data(), message.size());
  } catch (const std::exception& error) {
    throw RunFault("error", fmt::format("the kernel threw: {}", error.what()));
  } catch (...) {
    throw RunFault("error", "the kernel threw something");
  }
  if (const auto change = before.restore())
    throw RunFault("canaries", fmt::format("the thread's floating-point mode was left changed: {}", *change));
  if (failed != 0) {
    const std::string why = said(message);
    throw RunFault("error", why.empty() ? fmt::format("the kernel returned {} and does not say why", failed)
                                        : fmt::format("the kernel says: {}", why));
  }
}

MarshalTerms terms_of(const assay_kernel& kernel, MarshalledWeights& weights) {
  return {.activations = kernel.activations,
          .device = kernel.device == ASSAY_CUDA ? &cuda_memory() : nullptr,
          .weights = &weights};
}

template <class Call>
ResultOf<Call> run(const assay_kernel& kernel, MarshalledWeights& weights, Ops& ops, const Call& call) {
  MarshalledCall marshalled(terms_of(kernel, weights));
  ResultOf<Call> result = result_of(&ops, call);
  const auto a = described(marshalled, call, result);
  run_once(kernel, context_for(kernel, ops.arithmetic(), ops.jobs(), true), wrapped<Call>(a));
  marshalled.settle();
  return result;
}

// visit(an empty list of kernels) for the operation of that name.
template <class Visitor>
void with_op(Registry& registry, std::string_view op, Visitor&& visit) {
  registry.for_each_op([&]<class Call>(const std::vector<Kernel<Call>>&) {
    if constexpr (kIsOffered<Call>) {
      if (Call::kOp == op) visit(Kernel<Call>());
    }
  });
}

template <class Call>
void describe(Kernel<Call>& entry, const PluginKernel& kernel) {
  entry.name = kernel.name;
  entry.about = kernel.about;
  entry.device = kernel.device;
  entry.invariants = kernel.invariants;
  entry.roundoffs.accumulator = kernel.accumulator_roundoff;
}

}  // namespace

void add_adapted(Registry& registry, const PluginKernel& kernel, std::shared_ptr<MarshalledWeights> weights) {
  with_op(registry, kernel.op, [&]<class Call>(Kernel<Call> entry) {
    describe(entry, kernel);
    entry.takes = [c = kernel.entry](const Arithmetic& arithmetic, const Call& call) {
      return takes(c, arithmetic, call);
    };
    entry.run = [c = kernel.entry, weights](Ops& ops, const Call& call) {
      return run(c, *weights, ops, call);
    };
    registry.add(std::move(entry));
  });
}

void add_remote(Registry& registry, const PluginKernel& kernel, std::shared_ptr<RemoteKernel> remote) {
  with_op(registry, kernel.op, [&]<class Call>(Kernel<Call> entry) {
    describe(entry, kernel);
    entry.remote = remote;
    registry.add(std::move(entry));
  });
}

template <class Call>
std::optional<double> time_plugin(const PluginKernel& kernel, MarshalledWeights& weights, Ops& ops,
                                  const Call& call, double least) {
  const assay_kernel& c = kernel.entry;
  if (!takes(c, ops.arithmetic(), call)) return std::nullopt;
  MarshalledCall marshalled(terms_of(c, weights));
  ResultOf<Call> result = result_of(&ops, call);
  const auto a = described(marshalled, call, result);
  const assay_context context = context_for(c, ops.arithmetic(), ops.jobs(), true);
  const assay_call wrapped_call = wrapped<Call>(a);
  return fastest(
      [&] {
        run_once(c, context, wrapped_call);
        if (c.device == ASSAY_CUDA) cuda_memory().finish();
      },
      least);
}

std::string_view op_name(std::int32_t op) {
  std::string_view name;
  Registry().for_each_op([&]<class Call>(const std::vector<Kernel<Call>>&) {
    if constexpr (kIsOffered<Call>) {
      if (AbiOf<Call>::kOp == op) name = Call::kOp;
    }
  });
  return name;
}

#define ASSAY_INSTANTIATE(Call)                                                                          \
  template std::optional<double> time_plugin(const PluginKernel&, MarshalledWeights&, Ops&, const Call&, \
                                             double)
ASSAY_FOR_EVERY_PLUGIN_CALL(ASSAY_INSTANTIATE);
#undef ASSAY_INSTANTIATE

}  // namespace assay
