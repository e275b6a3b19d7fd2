#include "kernels/harness/case_run.h"

#include <type_traits>

#include "kernels/cpu/shared_loops.h"
#include "kernels/harness/every_call.h"

namespace assay {
namespace {

template <class Call>
bool vary(const Operands<Call>& operands, const Variation& variation, Call& call) {
  if (variation.part != CallPart::whole) {
    std::optional<Call> part =
        variation.part == CallPart::first_token ? operands.first_token(call) : operands.first_chunk(call);
    if (!part) return false;
    call = std::move(*part);
  }
  return !variation.spoilt || operands.spoil_last_token(call);
}

// What the kernel keeps by address alone is out of date when the call's own numbers come.
template <class Call>
void run_on_other_contents(const Kernel<Call>& kernel, const Call& call, GuardedOps& ops,
                           const std::function<void(bool)>& lend_others) {
  const GuardedOps::Contents contents = ops.contents();
  ops.reverse_inputs();
  if (lend_others) lend_others(true);
  try {
    kernel.run(ops, call);
  } catch (const RunFault&) {
    // These numbers are not the case's: what the kernel says to them is not asked.
  }
  if (lend_others) lend_others(false);
  ops.restore(contents);
  ops.rewind();
}

}  // namespace

template <class Call>
CaseRun run_case(const Kernel<Call>& kernel, const Operands<Call>& operands, const Variation& variation,
                 std::unique_ptr<GuardedOps>* kept, const std::function<void(bool)>& lend_others) {
  CaseRun run;
  auto ops = std::make_unique<GuardedOps>(operands.arithmetic, variation.jobs, variation.padding);
  try {
    Call call = operands.call(*ops);
    run.taken = kernel.takes(operands.arithmetic, call);
    if (!run.taken && kernel.refusal) run.detail = kernel.refusal(operands.arithmetic, call);
    if (!run.taken || !vary(operands, variation, call)) {
      run.taken = false;
      return run;
    }
    for (const Matrix& state : states_after(call)) ops->may_change(state);
    ops->seal();
    if (variation.reused) run_on_other_contents(kernel, call, *ops, lend_others);
    const std::size_t loops = cpu::shared_loops();
    run.parts = parts_of_call(*ops, call, kernel.run(*ops, call));
    // Only our own loops are seen; those of the reference and of libraries are taken for shared.
    run.shared = !kernel.name.starts_with("cpu.") || cpu::shared_loops() != loops;
  } catch (const RunFault& fault) {
    run.check = fault.check();
    run.detail = fault.what();
    return run;
  } catch (const std::exception& error) {
    run.check = "exception";
    run.detail = error.what();
    return run;
  }
  std::optional<std::string> damage = ops->damage();
  if (damage) *damage += " was written";
  if (!damage && !std::is_same_v<Call, RotaryCall>) damage = ops->changed_input();
  if (damage) {
    run.check = "canaries";
    run.detail = *damage;
  }
  if (kept != nullptr) *kept = std::move(ops);
  return run;
}

#define ASSAY_INSTANTIATE(Call)                                                           \
  template CaseRun run_case(const Kernel<Call>&, const Operands<Call>&, const Variation&, \
                            std::unique_ptr<GuardedOps>*, const std::function<void(bool)>&)
ASSAY_FOR_EVERY_CALL(ASSAY_INSTANTIATE);
#undef ASSAY_INSTANTIATE

}  // namespace assay
