#include "compiler/ops/precision.h"

#include "compiler/ir/graph.h"
#include "gtest/gtest.h"

namespace pipec {
namespace {

TEST(Precision, FollowsAutocast) {
  for (const char* op : {"MatMul", "Gemm", "Conv", "ConvTranspose", "LSTM"})
    EXPECT_EQ(PrecisionClassOf(op, ""), PrecisionClass::kSmall) << op;
  for (const char* op :
       {"Exp", "Log", "Pow", "ReduceSum", "ReduceMean", "CumSum", "LogSoftmax", "SoftmaxCrossEntropyLoss"})
    EXPECT_EQ(PrecisionClassOf(op, ""), PrecisionClass::kFloat32) << op;
  for (const char* op : {"Softmax", "LayerNormalization", "BatchNormalization", "RMSNormalization"})
    EXPECT_EQ(PrecisionClassOf(op, ""), PrecisionClass::kNorm) << op;
  for (const char* op : {"Add", "Relu", "Transpose", "Gather", "MaxPool", "NoSuchOp"})
    EXPECT_EQ(PrecisionClassOf(op, ""), PrecisionClass::kFollow) << op;
}

TEST(Precision, HelpersAreNotOnnxOps) {
  EXPECT_EQ(PrecisionClassOf("FusedMatMul", kPipecDomain), PrecisionClass::kSmall);
  EXPECT_EQ(PrecisionClassOf("FusedAttention", kPipecDomain), PrecisionClass::kSmall);
  EXPECT_EQ(PrecisionClassOf("FusedMatMul", ""), PrecisionClass::kFollow);
  EXPECT_EQ(PrecisionClassOf("SoftmaxCrossEntropy", kPipecDomain), PrecisionClass::kFloat32);
  EXPECT_EQ(PrecisionClassOf("Softmax", kPipecDomain), PrecisionClass::kFollow);
}

}  // namespace
}  // namespace pipec
