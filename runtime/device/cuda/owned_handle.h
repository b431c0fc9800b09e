// A handle of a CUDA library that lives as long as this does.
#pragma once

namespace pipec::cuda {

// `kDestroy`: the library's call that gives the handle back. Made by passing its address to the library's create call.
template <typename Handle, auto kDestroy>
class OwnedHandle {
 public:
  OwnedHandle() = default;
  ~OwnedHandle() {
    if (handle_ != nullptr) kDestroy(handle_);
  }
  OwnedHandle(const OwnedHandle&) = delete;
  OwnedHandle& operator=(const OwnedHandle&) = delete;
  Handle* operator&() { return &handle_; }
  operator Handle() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};

}  // namespace pipec::cuda
