// Graphs of operations by the double of cuDNN's backend API, and what it refuses.
#include <cuda_fp16.h>
#include <cudnn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/cuda_emulation/control.h"
#include "tests/cuda_emulation/device_array.h"

namespace cuda_emulation {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Descriptor = cudnnBackendDescriptor_t;

class CudnnGraphs : public testing::Test {
 protected:
  void SetUp() override {
    SetSeed(0);
    ASSERT_EQ(cudnnCreate(&handle_), CUDNN_STATUS_SUCCESS);
  }
  void TearDown() override {
    for (Descriptor each : made_) cudnnBackendDestroyDescriptor(each);
    cudnnDestroy(handle_);
    EXPECT_EQ(CountLiveObjects().dnn_objects, 0u);
    SetSeed(0);
  }

  Descriptor New(cudnnBackendDescriptorType_t type) {
    Descriptor made = nullptr;
    EXPECT_EQ(cudnnBackendCreateDescriptor(type, &made), CUDNN_STATUS_SUCCESS);
    made_.push_back(made);
    return made;
  }
  template <typename T>
  static cudnnStatus_t Set(Descriptor d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                           const std::vector<T>& values) {
    return cudnnBackendSetAttribute(d, name, type, static_cast<int64_t>(values.size()), values.data());
  }
  static cudnnStatus_t Refer(Descriptor d, cudnnBackendAttributeName_t name, Descriptor other) {
    return cudnnBackendSetAttribute(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other);
  }

  enum Where { kMemory, kVirtual, kByValue };
  Descriptor Tensor(int64_t number, cudnnDataType_t type, const std::vector<int64_t>& dims,
                    const std::vector<int64_t>& steps, Where where = kMemory, int64_t alignment = 16) {
    const Descriptor d = New(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    const bool is_virtual = where == kVirtual, by_value = where == kByValue;
    Set<int64_t>(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, {number});
    Set<cudnnDataType_t>(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, {type});
    Set<int64_t>(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, {alignment});
    Set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dims);
    Set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, steps);
    cudnnBackendSetAttribute(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    cudnnBackendSetAttribute(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
    status_ = cudnnBackendFinalize(d);
    return d;
  }
  // Of float32, (1, 2, 3), row after row.
  Descriptor Floats(int64_t number, Where where = kMemory) {
    return Tensor(number, CUDNN_DATA_FLOAT, {1, 2, 3}, {6, 3, 1}, where);
  }

  Descriptor Elements(cudnnPointwiseMode_t mode, const std::vector<Descriptor>& x, Descriptor y,
                      int64_t axis = -1) {
    const Descriptor how = New(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    Set<cudnnPointwiseMode_t>(how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, {mode});
    Set<cudnnDataType_t>(how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, {CUDNN_DATA_FLOAT});
    if (axis >= 0) Set<int64_t>(how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, {axis});
    status_ = cudnnBackendFinalize(how);
    if (status_ != CUDNN_STATUS_SUCCESS) return nullptr;
    const Descriptor d = New(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    Refer(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    constexpr cudnnBackendAttributeName_t kOperands[] = {CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                                         CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                                         CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
    for (size_t k = 0; k < x.size(); ++k) Refer(d, kOperands[k], x[k]);
    Refer(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    status_ = cudnnBackendFinalize(d);
    return d;
  }
  Descriptor Product(Descriptor a, Descriptor b, Descriptor c) {
    const Descriptor how = New(CUDNN_BACKEND_MATMUL_DESCRIPTOR),
                     d = New(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    Set<cudnnDataType_t>(how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, {CUDNN_DATA_FLOAT});
    cudnnBackendFinalize(how);
    Refer(d, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    Refer(d, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    Refer(d, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    Refer(d, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    status_ = cudnnBackendFinalize(d);
    return d;
  }
  Descriptor Reduction(cudnnReduceTensorOp_t mode, Descriptor x, Descriptor y) {
    const Descriptor how = New(CUDNN_BACKEND_REDUCTION_DESCRIPTOR),
                     d = New(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    Set<cudnnReduceTensorOp_t>(how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
                               {mode});
    Set<cudnnDataType_t>(how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, {CUDNN_DATA_FLOAT});
    cudnnBackendFinalize(how);
    Refer(d, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
    Refer(d, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    Refer(d, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    status_ = cudnnBackendFinalize(d);
    return d;
  }

  Descriptor Reshape(Descriptor x, Descriptor y) {
    const Descriptor d = New(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    Refer(d, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    Refer(d, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    status_ = cudnnBackendFinalize(d);
    return d;
  }

  Descriptor Graph(const std::vector<Descriptor>& operations) {
    const Descriptor graph = New(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    Set<cudnnHandle_t>(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, {handle_});
    Set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations);
    status_ = cudnnBackendFinalize(graph);
    return graph;
  }
  // How many proposals there are.
  int64_t Ask(Descriptor graph, std::vector<Descriptor>* configurations) {
    const Descriptor asked = New(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    Refer(asked, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    Set<cudnnBackendHeurMode_t>(asked, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, {CUDNN_HEUR_MODE_A});
    EXPECT_EQ(cudnnBackendFinalize(asked), CUDNN_STATUS_SUCCESS);
    for (int i = 0; i < 4; ++i) configurations->push_back(New(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    int64_t found = -1;
    EXPECT_EQ(cudnnBackendGetAttribute(asked, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 4,
                                       &found, configurations->data()),
              CUDNN_STATUS_SUCCESS);
    return found;
  }
  Descriptor Plan(const std::vector<Descriptor>& operations, int proposal = 3) {
    std::vector<Descriptor> configurations;
    if (Ask(Graph(operations), &configurations) <= proposal) return nullptr;
    const Descriptor plan = New(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    Set<cudnnHandle_t>(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, {handle_});
    Refer(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configurations[proposal]);
    status_ = cudnnBackendFinalize(plan);
    return plan;
  }
  cudnnStatus_t Run(Descriptor plan, const std::vector<std::pair<int64_t, void*>>& operands) {
    std::vector<int64_t> numbers;
    std::vector<void*> addresses;
    for (const auto& [number, address] : operands) numbers.push_back(number), addresses.push_back(address);
    const Descriptor pack = New(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    Set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, numbers);
    Set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, addresses);
    Set<void*>(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, {workspace_.data()});
    if (cudnnBackendFinalize(pack) != CUDNN_STATUS_SUCCESS) return CUDNN_STATUS_BAD_PARAM;
    return cudnnBackendExecute(handle_, plan, pack);
  }

  cudnnHandle_t handle_ = nullptr;
  cudnnStatus_t status_ = CUDNN_STATUS_SUCCESS;  // of what was finalized last
  std::vector<Descriptor> made_;
  DeviceArray<float> x_{{1, 2, 3, 4, 5, 6}}, y_{std::vector<float>(6)};
  DeviceArray<float> workspace_{std::vector<float>(256)};
};

// Sums of rows of 2 (x + the row's largest) / x where the column is at most the row, and 7 elsewhere.
TEST_F(CudnnGraphs, Computes) {
  const auto floats = [&](int64_t number) { return Floats(number, kVirtual); };
  const auto integers = [&](int64_t number, cudnnDataType_t type) {
    return Tensor(number, type, {1, 2, 3}, {6, 3, 1}, kVirtual);
  };
  const Descriptor x = Floats(1), largest = Tensor(2, CUDNN_DATA_FLOAT, {1, 2, 1}, {2, 1, 1}, kVirtual),
                   two = Tensor(3, CUDNN_DATA_FLOAT, {1, 1, 1}, {1, 1, 1}, kByValue), more = floats(4),
                   all = floats(5), parts = floats(6), rows = integers(7, CUDNN_DATA_INT32),
                   columns = integers(8, CUDNN_DATA_INT32), seen = integers(9, CUDNN_DATA_BOOLEAN),
                   seven = Tensor(10, CUDNN_DATA_FLOAT, {1, 1, 1}, {1, 1, 1}, kByValue), kept = floats(11),
                   y = Tensor(12, CUDNN_DATA_FLOAT, {1, 2, 1}, {2, 1, 1});
  const Descriptor plan =
      Plan({Reduction(CUDNN_REDUCE_TENSOR_MAX, x, largest), Elements(CUDNN_POINTWISE_ADD, {x, largest}, more),
            Elements(CUDNN_POINTWISE_MUL, {more, two}, all), Elements(CUDNN_POINTWISE_DIV, {all, x}, parts),
            Elements(CUDNN_POINTWISE_GEN_INDEX, {x}, rows, 1),
            Elements(CUDNN_POINTWISE_GEN_INDEX, {x}, columns, 2),
            Elements(CUDNN_POINTWISE_CMP_GE, {rows, columns}, seen),
            Elements(CUDNN_POINTWISE_BINARY_SELECT, {parts, seven, seen}, kept),
            Reduction(CUDNN_REDUCE_TENSOR_ADD, kept, y)});
  ASSERT_EQ(status_, CUDNN_STATUS_SUCCESS) << testing::PrintToString(TakeReports());
  float by_two = 2, of_seven = 7;
  ASSERT_EQ(Run(plan, {{1, x_.data()}, {3, &by_two}, {10, &of_seven}, {12, y_.data()}}),
            CUDNN_STATUS_SUCCESS);
  by_two = of_seven = 0;  // read when the plan was enqueued
  // Row 0: 2 (1 + 3) / 1, 7, 7. Row 1: 2 (4 + 6) / 4, 2 (5 + 6) / 5, 7.
  EXPECT_THAT(y_.Read(), ElementsAre(22, testing::FloatEq(5 + 4.4f + 7), 0, 0, 0, 0));
}

TEST_F(CudnnGraphs, ExponentialsAndLogarithmsAndWhatLiesBetweenIsRounded) {
  const Descriptor x = Floats(1), low = Tensor(2, CUDNN_DATA_BFLOAT16, {1, 2, 3}, {6, 3, 1}, kVirtual),
                   back = Floats(3, kVirtual), y = Floats(4);
  const Descriptor plan =
      Plan({Elements(CUDNN_POINTWISE_EXP, {x}, low), Elements(CUDNN_POINTWISE_LOG, {low}, back),
            Elements(CUDNN_POINTWISE_SUB, {back, x}, y)});
  ASSERT_EQ(Run(plan, {{1, x_.data()}, {4, y_.data()}}), CUDNN_STATUS_SUCCESS);
  for (const float error : y_.Read()) {
    EXPECT_NE(error, 0);
    EXPECT_NEAR(error, 0, 1.0 / 256);
  }
}

// A (1,2,8) times B (1,8,8) as its transpose.
TEST_F(CudnnGraphs, Multiplies) {
  std::vector<__half> a(16), b(64);
  for (int i = 0; i < 16; ++i) a[i] = __float2half(static_cast<float>(i % 8 + i / 8));
  b[3 * 8 + 5] = __float2half(2);  // column 3, row 5
  DeviceArray<__half> in_a(a), in_b(b), in_c(a);
  const Descriptor plan = Plan({Product(Tensor(1, CUDNN_DATA_HALF, {1, 2, 8}, {16, 8, 1}),
                                        Tensor(2, CUDNN_DATA_HALF, {1, 8, 8}, {64, 1, 8}),
                                        Tensor(3, CUDNN_DATA_HALF, {1, 2, 8}, {16, 8, 1}))});
  ASSERT_NE(plan, nullptr);
  ASSERT_EQ(Run(plan, {{1, in_a.data()}, {2, in_b.data()}, {3, in_c.data()}}), CUDNN_STATUS_SUCCESS);
  const std::vector<__half> c = in_c.Read();
  for (int i = 0; i < 16; ++i) EXPECT_EQ(__half2float(c[i]), i == 3 ? 10 : i == 11 ? 12 : 0) << i;
}

// (1,2,3) as (1,3,2), its transpose.
TEST_F(CudnnGraphs, Transposes) {
  const Descriptor x = Floats(1), between = Tensor(2, CUDNN_DATA_FLOAT, {1, 3, 2}, {6, 1, 3}, kVirtual),
                   y = Tensor(3, CUDNN_DATA_FLOAT, {1, 3, 2}, {6, 2, 1});
  const Descriptor two = Tensor(4, CUDNN_DATA_FLOAT, {1, 1, 1}, {1, 1, 1}, kByValue);
  const Descriptor transposed = Reshape(x, between);
  const Descriptor plan = Plan({transposed, Elements(CUDNN_POINTWISE_MUL, {between, two}, y)});
  float by_two = 2;
  ASSERT_EQ(Run(plan, {{1, x_.data()}, {3, y_.data()}, {4, &by_two}}), CUDNN_STATUS_SUCCESS);
  EXPECT_THAT(y_.Read(), ElementsAre(2, 8, 4, 10, 6, 12));
  Reshape(x, Tensor(5, CUDNN_DATA_FLOAT, {1, 3, 2}, {8, 1, 4}, kVirtual));
  EXPECT_THAT(TakeReports(), ElementsAre(HasSubstr("lies elsewhere")));
}

// No engine for products of float32, or of rows that are not 16 bytes wide.
TEST_F(CudnnGraphs, HasNoPlanForSomeProducts) {
  for (const cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF}) {
    const int64_t n = type == CUDNN_DATA_FLOAT ? 8 : 4;
    std::vector<Descriptor> configurations;
    const Descriptor graph =
        Graph({Product(Tensor(1, type, {1, 2, n}, {2 * n, n, 1}), Tensor(2, type, {1, n, 8}, {8 * n, 8, 1}),
                       Tensor(3, type, {1, 2, 8}, {16, 8, 1}))});
    EXPECT_EQ(status_, CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(Ask(graph, &configurations), 0);
  }
}

TEST_F(CudnnGraphs, ProposalsThatACarefulCallerDoesNotTake) {
  const std::vector<Descriptor> operations = {Elements(CUDNN_POINTWISE_EXP, {Floats(1)}, Floats(2))};
  for (const int proposal : {0, 1}) {
    EXPECT_EQ(Run(Plan(operations, proposal), {{1, x_.data()}, {2, y_.data()}}), CUDNN_STATUS_BAD_PARAM);
  }
  Plan(operations, 2);
  EXPECT_EQ(status_, CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_THAT(TakeReports(), ElementsAre(HasSubstr("does not repeat"), HasSubstr("does not repeat")));
}

TEST_F(CudnnGraphs, RefusesAttributesThatDoNotFit) {
  const Descriptor d = New(CUDNN_BACKEND_TENSOR_DESCRIPTOR),
                   other = New(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  EXPECT_EQ(cudnnBackendFinalize(d), CUDNN_STATUS_BAD_PARAM);
  Set<int64_t>(d, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, {1});
  Set<float>(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_FLOAT, {1});
  Set<int64_t>(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, {1, 2});
  Refer(other, CUDNN_ATTR_OPERATION_MATMUL_ADESC, d);
  const Descriptor whole = Floats(1);
  Set<int64_t>(whole, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, {2});
  cudnnBackendFinalize(whole);
  Refer(other, CUDNN_ATTR_OPERATION_MATMUL_DESC, whole);
  cudnnBackendDestroyDescriptor(whole);
  made_.pop_back();
  Refer(other, CUDNN_ATTR_OPERATION_MATMUL_ADESC, whole);
  EXPECT_EQ(cudnnBackendDestroyDescriptor(whole), CUDNN_STATUS_BAD_PARAM);
  EXPECT_THAT(TakeReports(),
              ElementsAre(HasSubstr("is not set"), HasSubstr("without attribute"), HasSubstr("another type"),
                          HasSubstr("2 elements"), HasSubstr("not finalized"), HasSubstr("is finalized"),
                          HasSubstr("is finalized"), HasSubstr("another type"), HasSubstr("lives no more"),
                          HasSubstr("lives no more")));
}

TEST_F(CudnnGraphs, RefusesTensorsAndOperationsThatDoNotFit) {
  Tensor(1, CUDNN_DATA_FLOAT, {2, 3}, {3});
  Tensor(1, CUDNN_DATA_FLOAT, {2, 0}, {3, 1});
  Tensor(1, CUDNN_DATA_FLOAT, {2, 3}, {3, 1}, kMemory, 2);
  Tensor(1, CUDNN_DATA_FLOAT, {2, 3}, {3, 1}, kByValue);
  Tensor(1, CUDNN_DATA_INT8, {2, 3}, {3, 1});
  const Descriptor x = Floats(1), y = Floats(2), small = Tensor(3, CUDNN_DATA_FLOAT, {1, 2, 2}, {4, 2, 1}),
                   flags = Tensor(4, CUDNN_DATA_BOOLEAN, {1, 2, 3}, {6, 3, 1}, kVirtual);
  Elements(CUDNN_POINTWISE_ADD, {x}, y);
  Elements(CUDNN_POINTWISE_ADD, {x, small}, y);
  Elements(CUDNN_POINTWISE_ADD, {x, flags}, y);
  Elements(CUDNN_POINTWISE_CMP_GE, {x, x}, y);
  Elements(CUDNN_POINTWISE_GEN_INDEX, {x}, y, 1);
  Elements(CUDNN_POINTWISE_GEN_INDEX, {x}, y);
  Elements(CUDNN_POINTWISE_TANH_FWD, {x}, y);
  Product(x, y, small);
  Reduction(CUDNN_REDUCE_TENSOR_ADD, x, small);
  EXPECT_THAT(TakeReports(), ElementsAre(HasSubstr("another number of steps"), HasSubstr("below 1"),
                                         HasSubstr("no alignment"), HasSubstr("several elements by value"),
                                         HasSubstr("does not know"), HasSubstr("number of operands"),
                                         HasSubstr("do not broadcast"), HasSubstr("not the operation's"),
                                         HasSubstr("another type"), HasSubstr("not of int32"),
                                         HasSubstr("want an axis"), HasSubstr("does not know"),
                                         HasSubstr("dimensions do not fit"), HasSubstr("another shape")));
}

TEST_F(CudnnGraphs, RefusesGraphsThatAreNotWhole) {
  const Descriptor x = Floats(1), between = Floats(2, kVirtual), y = Floats(3), alike = Floats(1, kVirtual);
  const Descriptor first = Elements(CUDNN_POINTWISE_EXP, {x}, between),
                   second = Elements(CUDNN_POINTWISE_EXP, {between}, y);
  Graph({second});
  Graph({first});
  Graph({first, second, Elements(CUDNN_POINTWISE_LOG, {x}, y)});
  Graph({first, second, Elements(CUDNN_POINTWISE_LOG, {alike}, y)});
  Graph({first, second});
  EXPECT_EQ(status_, CUDNN_STATUS_SUCCESS);
  EXPECT_THAT(TakeReports(),
              ElementsAre(HasSubstr("no operation before gives"), HasSubstr("no operation reads"),
                          HasSubstr("two operations give"), HasSubstr("of one number")));
}

TEST_F(CudnnGraphs, RefusesOperandsThatAreNotThere) {
  const Descriptor plan = Plan({Elements(CUDNN_POINTWISE_EXP, {Floats(1)}, Floats(2))});
  EXPECT_EQ(Run(plan, {{1, x_.data()}}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(Run(plan, {{1, x_.data()}, {2, y_.data()}, {3, y_.data()}}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(Run(plan, {{1, x_.data()}, {1, y_.data()}}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(Run(plan, {{1, x_.data()}, {2, nullptr}}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(Run(plan, {{1, x_.data() + 1}, {2, y_.data()}}), CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
  EXPECT_THAT(TakeReports(),
              ElementsAre(HasSubstr("has no address"), HasSubstr("that has none"), HasSubstr("twice"),
                          HasSubstr("lies nowhere"), HasSubstr("not aligned")));
  DeviceArray<float> few({1, 2, 3, 4});  // six are wanted
  EXPECT_EQ(Run(plan, {{1, few.data()}, {2, y_.data()}}), CUDNN_STATUS_SUCCESS);
  EXPECT_NE(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_THAT(TakeReports(), ElementsAre(HasSubstr("cudnnBackendExecute")));
}

}  // namespace
}  // namespace cuda_emulation
