// A kernel that is one oneDNN primitive, made at load. The only header here that shows oneDNN; its exceptions
// end where CatchOneDnn stands.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "dnnl.hpp"
#include "runtime/device/device.h"

namespace pipec::cpu {

dnnl::engine& OneDnnEngine();

// Of float32, bfloat16 and float16.
dnnl::memory::data_type OneDnnType(DType dtype);

// Whether an implementation (primitive_desc::impl_info_str) is worth it. Unimplemented where the processor has
// none for 16-bit floats: float32 is faster than oneDNN's reference loops.
absl::Status CheckImplementation(DType dtype, absl::string_view implementation);

// Attributes under which a primitive takes its scratchpad from the rank's workspace.
dnnl::primitive_attr OneDnnAttributes();

// Which operand a primitive's argument is: input or output `operand`, of the form that the primitive
// description asks for.
struct OneDnnArgument {
  int name;  // DNNL_ARG_...
  bool is_output;
  int operand;
  dnnl::memory::desc form;
};

// `primitive` was made with OneDnnAttributes(); `scratchpad` is its description's. Launch sets addresses and
// executes.
std::unique_ptr<Kernel> MakeOneDnnKernel(dnnl::primitive primitive, const dnnl::memory::desc& scratchpad,
                                         std::vector<OneDnnArgument> arguments);

// Held while primitives are made: oneDNN hands cached ones from thread to thread in ways that no sanitizer
// can follow, and with the cache warm the ranks that wait for one another here lose nothing.
std::mutex& OneDnnCreation();

// make() -> std::unique_ptr<Kernel>; Unimplemented if oneDNN refuses.
template <typename Make>
absl::StatusOr<std::unique_ptr<Kernel>> CatchOneDnn(const Make& make) {
  std::lock_guard<std::mutex> lock(OneDnnCreation());
  try {
    return make();
  } catch (const dnnl::error& error) {
    return absl::UnimplementedError(absl::StrCat("oneDNN makes no such primitive: ", error.what()));
  }
}

}  // namespace pipec::cpu
