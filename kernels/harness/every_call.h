// Do(EmbeddingCall); Do(LinearCall); … for the Call of every operation, where a template is made for each.
#pragma once

// Those that plugins are offered: kernels/plugin.h has words for them.
#define ASSAY_FOR_EVERY_PLUGIN_CALL(Do) \
  Do(EmbeddingCall);                    \
  Do(LinearCall);                       \
  Do(RmsNormCall);                      \
  Do(LayerNormCall);                    \
  Do(RotaryCall);                       \
  Do(AttentionCall);                    \
  Do(MlaCall);                          \
  Do(ActivationCall);                   \
  Do(GatedActivationCall);              \
  Do(SoftmaxCall);                      \
  Do(MoeGateCall);                      \
  Do(FusedMoeCall);                     \
  Do(QuantizeCall);                     \
  Do(DequantizeCall)

#define ASSAY_FOR_EVERY_CALL(Do)   \
  ASSAY_FOR_EVERY_PLUGIN_CALL(Do); \
  Do(ConvolutionCall);             \
  Do(DeltaRuleCall);               \
  Do(StateSpaceCall);              \
  Do(GatedNormCall);               \
  Do(OutputGateCall);              \
  Do(IndexCall)
